import { fault, pluginRegistry, type FileEntry, type Parsed, type Returns } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { PluginBlobs } from './blobs.js';
import { PluginRepository } from './plugin.repository.js';

const PART_BYTES = 256 * 1024;

/** Serves installed packages to the runners that start their servers. */
@Injectable()
export class PackageService {
  constructor(
    private readonly blobs: PluginBlobs,
    private readonly repository: PluginRepository,
  ) {}

  async read({ id, digest, file, offset }: Parsed<typeof pluginRegistry.readPackage>): Promise<Returns<typeof pluginRegistry.readPackage>> {
    const installation = await this.repository.find(id);
    const found = installation?.digest === digest ? await this.repository.package(digest) : undefined;
    if (found === undefined) throw fault(pluginRegistry.readPackage, 'PLUGIN_UNKNOWN');
    if (file === undefined) return pageOf(found.tree, offset);
    const bytes = found.tree.some((entry) => entry.digest === file) ? await this.blobs.read(file) : undefined;
    if (bytes === undefined) throw fault(pluginRegistry.readPackage, 'PLUGIN_UNKNOWN');
    const end = Math.min(bytes.byteLength, offset + PART_BYTES);
    return { data: bytes.subarray(offset, end).toString('base64'), next: end < bytes.byteLength ? end : null };
  }
}

/** Entries of a tree from one on, as many as one message takes. */
function pageOf(tree: readonly FileEntry[], offset: number): { tree: FileEntry[]; next: number | null } {
  const page: FileEntry[] = [];
  let room = PART_BYTES;
  for (const entry of tree.slice(offset)) {
    room -= Buffer.byteLength(JSON.stringify(entry));
    if (room < 0 && page.length > 0) return { tree: page, next: offset + page.length };
    page.push(entry);
  }
  return { tree: page, next: null };
}
