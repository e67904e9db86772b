import { isObject, utf8Text } from '@ambit/capability';
import { fault, skillStore, type Parsed, type Returns } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { SkillBlobs } from './blobs.js';
import { readFrontmatter } from './skill-file.reader.js';
import { SkillSwitch } from './skill-switch.service.js';
import { SkillRepository, type Version } from './skill.repository.js';

/** Serves a skill's files by range. A name that is switched off or gone is not readable, whatever digest a snapshot pins. */
@Injectable()
export class ContentService {
  constructor(
    private readonly blobs: SkillBlobs,
    private readonly repository: SkillRepository,
    private readonly master: SkillSwitch,
  ) {}

  async read(request: Parsed<typeof skillStore.readSkill>): Promise<Returns<typeof skillStore.readSkill>> {
    const version = await this.versionOf(request);
    const file = version.tree.find((entry) => entry.path === request.path);
    const bytes = file === undefined ? undefined : await this.blobs.read(file.digest);
    if (bytes === undefined) throw fault(skillStore.readSkill, 'FILE_NOT_FOUND');
    const end = Math.min(bytes.byteLength, request.offset + request.length);
    const part = bytes.subarray(request.offset, end);
    const text = request.offset === 0 && end === bytes.byteLength ? utf8Text(part) : undefined;
    return {
      ...(text === undefined ? { data: part.toString('base64') } : { text }),
      bytes: bytes.byteLength,
      next: end < bytes.byteLength ? end : null,
      files: version.tree.map((entry) => entry.path),
    };
  }

  async describe(request: Parsed<typeof skillStore.describeSkill>): Promise<Returns<typeof skillStore.describeSkill>> {
    const { tree } = await this.versionOf(request);
    const manifest = tree.find(({ path }) => path === 'SKILL.md');
    const bytes = manifest === undefined ? undefined : await this.blobs.read(manifest.digest);
    const read = bytes === undefined ? undefined : readFrontmatter(bytes);
    if (read === undefined || 'invalid' in read || !isObject(read.fields)) throw fault(skillStore.describeSkill, 'SKILL_NOT_FOUND');
    return { files: [...tree], frontmatter: { ...read.fields } };
  }

  private async versionOf({
    agentId,
    name,
    digest,
  }: {
    readonly agentId: string;
    readonly name: string;
    readonly digest?: string | undefined;
  }): Promise<Version> {
    if (!(await this.master.isOn())) throw fault(skillStore.readSkill, 'SKILL_NOT_FOUND');
    const own = await this.repository.find(agentId, name);
    // One that cannot be used takes no name from another; one that is switched off does.
    if (own?.version.valid === true) {
      const version = digest === undefined || digest === own.version.digest ? own.version : await this.repository.version(digest);
      if (own.entry.enabled && version?.facts?.name === name) return version;
      throw fault(skillStore.readSkill, 'SKILL_NOT_FOUND');
    }
    const contributed = (await this.repository.contributions(null, null)).find(
      ({ version }) => version.facts?.name === name && (digest === undefined || digest === version.digest),
    );
    if (contributed === undefined) throw fault(skillStore.readSkill, 'SKILL_NOT_FOUND');
    return contributed.version;
  }
}
