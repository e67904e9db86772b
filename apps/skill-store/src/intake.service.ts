import { ArchiveRefused, digestOfBytes, treeDigest, treeProblem, unpackZip } from '@ambit/bundle';
import { fault, skillStore, type FileEntry } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { SkillBlobs } from './blobs.js';
import { readSkillFile } from './skill-file.reader.js';
import { SkillRepository, type Version } from './skill.repository.js';

type Valid = Version & { readonly facts: NonNullable<Version['facts']> };

/** Turns uploaded files or a zip into a stored, judged version; refuses what is no usable skill. */
@Injectable()
export class IntakeService {
  constructor(
    private readonly blobs: SkillBlobs,
    private readonly repository: SkillRepository,
  ) {}

  async fromFiles(files: readonly FileEntry[]): Promise<Valid> {
    const problem = treeProblem(files);
    if (problem !== undefined) throw invalid(problem);
    const digests = await this.blobs.missing(files);
    if (digests.length > 0) throw fault(skillStore.putSkill, 'BLOB_MISSING', { digests });
    const manifest = files.find((file) => file.path === 'SKILL.md');
    if (manifest === undefined) throw invalid('there is no SKILL.md at its top');
    const verdict = readSkillFile((await this.blobs.read(manifest.digest)) ?? new Uint8Array(), null);
    if ('invalid' in verdict) throw invalid(verdict.invalid);
    const version = { digest: treeDigest(files), tree: files, facts: verdict.facts, valid: true, warnings: verdict.warnings };
    await this.repository.saveVersion(version);
    return version;
  }

  async fromArchive(digest: string): Promise<Valid> {
    const archive = await this.blobs.read(digest);
    if (archive === undefined) throw fault(skillStore.putSkill, 'BLOB_MISSING', { digests: [digest] });
    const unpacked = this.unpack(archive);
    const root = rootOf([...unpacked.keys()]);
    if (root === undefined) throw invalid('there is no SKILL.md in the archive');
    const files: FileEntry[] = [];
    for (const [path, bytes] of unpacked) {
      if (!path.startsWith(root)) continue;
      await this.blobs.add(bytes);
      files.push({ path: path.slice(root.length), mode: 'file', bytes: bytes.byteLength, digest: digestOfBytes(bytes) });
    }
    return this.fromFiles(files);
  }

  private unpack(archive: Uint8Array): ReadonlyMap<string, Uint8Array> {
    try {
      return unpackZip(archive);
    } catch (error) {
      if (error instanceof ArchiveRefused) throw fault(skillStore.putSkill, 'ARCHIVE_REFUSED', { reason: error.message });
      throw error;
    }
  }
}

/** A zip of a folder has the folder's name before every path; the skill begins where the topmost SKILL.md stands. */
function rootOf(paths: readonly string[]): string | undefined {
  const manifests = paths.filter((path) => path === 'SKILL.md' || path.endsWith('/SKILL.md'));
  const topmost = manifests.sort((left, right) => left.split('/').length - right.split('/').length)[0];
  return topmost?.slice(0, -'SKILL.md'.length);
}

function invalid(reason: string) {
  return fault(skillStore.putSkill, 'SKILL_INVALID', { reason: reason.slice(0, 1_000) });
}
