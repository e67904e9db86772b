import { ArchiveRefused, digestOfBytes, treeDigest, treeProblem, unpackZip } from '@ambit/bundle';
import { fault, pluginRegistry, type FileEntry, type Parsed } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { PluginBlobs } from './blobs.js';
import { CATALOGUE_BYTES, listedServer } from './domain/catalogue.js';
import { readManifest } from './domain/manifest.js';
import { PluginRepository, type Package } from './plugin.repository.js';

/** As many servers as a package may have. */
const SERVERS = 64;

/** Turns uploaded files or a zip into a verified, stored package. */
@Injectable()
export class IntakeService {
  constructor(
    private readonly blobs: PluginBlobs,
    private readonly repository: PluginRepository,
  ) {}

  async read(request: Parsed<typeof pluginRegistry.installPlugin>): Promise<Package> {
    if (request.archive === undefined && request.files === undefined) throw invalid('', 'send files or an archive');
    const tree = request.archive === undefined ? (request.files ?? []) : await this.unpack(request.archive);
    const problem = treeProblem(tree);
    if (problem !== undefined) throw invalid('', problem);
    const digests = await this.blobs.missing(tree);
    if (digests.length > 0) throw fault(pluginRegistry.installPlugin, 'BLOB_MISSING', { digests });
    const read = readManifest({
      plugin: await this.text(tree, 'plugin.json'),
      mcp: await this.text(tree, 'mcp.json'),
      paths: tree.map((file) => file.path),
      catalogues: await this.catalogues(tree),
    });
    if ('problem' in read) throw invalid(read.problem.path, read.problem.reason);
    const found = { digest: treeDigest(tree), tree, manifest: read.manifest };
    await this.repository.savePackage(found);
    return found;
  }

  private async catalogues(tree: readonly FileEntry[]): Promise<ReadonlyMap<string, string | null>> {
    const texts = new Map<string, string | null>();
    for (const { path, bytes } of tree.filter((file) => listedServer(file.path) !== undefined).slice(0, SERVERS))
      texts.set(path, bytes > CATALOGUE_BYTES ? null : ((await this.text(tree, path)) ?? null));
    return texts;
  }

  private async text(tree: readonly FileEntry[], path: string): Promise<string | undefined> {
    const file = tree.find((entry) => entry.path === path);
    return file === undefined ? undefined : (await this.blobs.read(file.digest))?.toString('utf8');
  }

  private async unpack(digest: string): Promise<FileEntry[]> {
    const archive = await this.blobs.read(digest);
    if (archive === undefined) throw fault(pluginRegistry.installPlugin, 'BLOB_MISSING', { digests: [digest] });
    let unpacked: ReadonlyMap<string, Uint8Array>;
    try {
      unpacked = unpackZip(archive);
    } catch (error) {
      if (error instanceof ArchiveRefused) throw fault(pluginRegistry.installPlugin, 'ARCHIVE_REFUSED', { reason: error.message });
      throw error;
    }
    const root =
      [...unpacked.keys()].find((path) => path === 'plugin.json' || /^[^/]+\/plugin\.json$/.test(path))?.slice(0, -'plugin.json'.length) ??
      '';
    const files: FileEntry[] = [];
    for (const [path, bytes] of unpacked) {
      if (!path.startsWith(root)) continue;
      await this.blobs.add(bytes);
      files.push({ path: path.slice(root.length), mode: 'file', bytes: bytes.byteLength, digest: digestOfBytes(bytes) });
    }
    return files;
  }
}

function invalid(path: string, reason: string) {
  return fault(pluginRegistry.installPlugin, 'PLUGIN_INVALID', { path, reason });
}
