import { fault, pluginRegistry, type Parsed, type Returns } from '@ambit/contracts';
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
    if (file === undefined) return { tree: [...found.tree], next: null };
    const bytes = found.tree.some((entry) => entry.digest === file) ? await this.blobs.read(file) : undefined;
    if (bytes === undefined) throw fault(pluginRegistry.readPackage, 'PLUGIN_UNKNOWN');
    const end = Math.min(bytes.byteLength, offset + PART_BYTES);
    return { data: bytes.subarray(offset, end).toString('base64'), next: end < bytes.byteLength ? end : null };
  }
}
