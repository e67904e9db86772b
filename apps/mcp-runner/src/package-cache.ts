import { Bus } from '@ambit/bus';
import { pluginRegistry, type FileEntry, type Output } from '@ambit/contracts';
import { CONFIG } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { dataFolderOf, type RunnerConfig } from './config.js';

const FILE_BYTES = 64 * 1024 * 1024;
const PACKAGE_BYTES = 512 * 1024 * 1024;
const PACKAGE_FILES = 4_096;
/** Files up to this size are fetched so many together. */
const SMALL_BYTES = 256 * 1024;
const TOGETHER = 8;

/** Plugin packages as folders, by digest: written once, whole or not at all, readable by every server's user. */
@Injectable()
export class PackageCache {
  private readonly unpacking = new Map<string, Promise<string>>();

  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(CONFIG) private readonly config: RunnerConfig,
  ) {}

  /** The folder of a package; fetches what is not there yet. */
  folderOf(pluginId: string, digest: string): Promise<string> {
    const known = this.unpacking.get(digest);
    if (known !== undefined) return known;
    const folder = this.unpack(pluginId, digest).finally(() => this.unpacking.delete(digest));
    this.unpacking.set(digest, folder);
    return folder;
  }

  private async unpack(pluginId: string, digest: string): Promise<string> {
    const packages = join(dataFolderOf(this.config), 'packages');
    const folder = join(packages, digest);
    if (await stat(folder).catch(() => undefined)) return folder;
    await mkdir(packages, { recursive: true, mode: 0o711 });
    const draft = await mkdtemp(join(packages, '.draft-'));
    try {
      await this.fill(draft, { id: pluginId, digest });
      await chmod(draft, 0o755);
      await rename(draft, folder);
      return folder;
    } catch (error) {
      await rm(draft, { recursive: true, force: true });
      // Another process may have been quicker.
      if (await stat(folder).catch(() => undefined)) return folder;
      throw error;
    }
  }

  private async fill(draft: string, plugin: { readonly id: string; readonly digest: string }): Promise<void> {
    const tree = await this.tree(plugin);
    const total = tree.reduce((sum, file) => sum + file.bytes, 0);
    if (total > PACKAGE_BYTES) throw new Error(`The package of ${plugin.id} has ${total} bytes, more than ${PACKAGE_BYTES}`);
    const [large, small] = [tree.filter(({ bytes }) => bytes > SMALL_BYTES), tree.filter(({ bytes }) => bytes <= SMALL_BYTES)];
    for (const file of large) await this.write(draft, plugin, file);
    for (let from = 0; from < small.length; from += TOGETHER)
      await Promise.all(small.slice(from, from + TOGETHER).map((file) => this.write(draft, plugin, file)));
  }

  private async write(draft: string, plugin: { readonly id: string; readonly digest: string }, file: FileEntry): Promise<void> {
    const path = join(draft, file.path);
    if (!path.startsWith(draft + sep)) throw new Error(`The package of ${plugin.id} has a file outside itself`);
    await mkdir(dirname(path), { recursive: true, mode: 0o755 });
    await writeFile(path, await this.read(plugin, file), { mode: file.mode === 'executable' ? 0o755 : 0o644 });
  }

  private async tree(plugin: { readonly id: string; readonly digest: string }): Promise<FileEntry[]> {
    const tree: FileEntry[] = [];
    for (let offset: number | null = 0; offset !== null;) {
      const page: Output<typeof pluginRegistry.readPackage> = await this.bus.call(pluginRegistry.readPackage, { ...plugin, offset });
      tree.push(...(page.tree ?? []));
      if (tree.length === 0) throw new Error(`The package of ${plugin.id} has no files`);
      if (tree.length > PACKAGE_FILES) throw new Error(`The package of ${plugin.id} has more than ${PACKAGE_FILES} files`);
      if (page.next !== null && page.next <= offset) throw new Error('the pages of a tree do not advance');
      offset = page.next;
    }
    return tree;
  }

  private async read(
    plugin: { readonly id: string; readonly digest: string },
    file: { readonly digest: string; readonly bytes: number },
  ): Promise<Buffer> {
    if (file.bytes > FILE_BYTES) throw new Error(`A file of the package of ${plugin.id} has ${file.bytes} bytes, more than ${FILE_BYTES}`);
    const parts: Buffer[] = [];
    let offset: number | null = 0;
    while (offset !== null) {
      const page: { readonly data?: string | undefined; readonly next: number | null } = await this.bus.call(pluginRegistry.readPackage, {
        ...plugin,
        file: file.digest,
        offset,
      });
      parts.push(Buffer.from(page.data ?? '', 'base64'));
      if (page.next !== null && page.next <= offset) throw new Error('the pages of a file do not advance');
      offset = page.next;
    }
    const bytes = Buffer.concat(parts);
    if (createHash('sha256').update(bytes).digest('hex') !== file.digest)
      throw new Error(`A file of the package of ${plugin.id} is not what its digest says`);
    return bytes;
  }
}
