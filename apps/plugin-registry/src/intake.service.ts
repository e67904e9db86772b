import { ArchiveRefused, digestOfBytes, PACKAGE_LIMITS, treeDigest, treeProblem, unpackArchive, type Unpacked } from '@ambit/bundle';
import { fault, pluginRegistry, type FileEntry, type Parsed } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { PluginBlobs } from './blobs.js';
import { compareChecksums, signatureOf, type Signature } from './domain/checksums.js';
import { isRead, PackageRefused, TEXT_BYTES, type PackageFiles } from './domain/package-files.js';
import { isRoot, readManifest } from './domain/read-manifest.js';
import { HereService } from './here.service.js';
import { PluginRepository, type Package } from './plugin.repository.js';
import { VerificationService, type Signer } from './verification.service.js';

/** A package that is whole, and who made it. */
export interface Taken extends Package {
  readonly signer: Signer;
}

/** Turns uploaded files or an archive into a stored package whose files are those that it lists. */
@Injectable()
export class IntakeService {
  constructor(
    private readonly blobs: PluginBlobs,
    private readonly repository: PluginRepository,
    private readonly here: HereService,
    private readonly verification: VerificationService,
  ) {}

  async read(request: Parsed<typeof pluginRegistry.installPlugin>): Promise<Taken> {
    if (request.archive === undefined && request.files === undefined) throw invalid('', 'send files or an archive');
    const tree = request.archive === undefined ? (request.files ?? []) : await this.unpack(request.archive);
    const problem = treeProblem(tree, PACKAGE_LIMITS);
    if (problem !== undefined) throw invalid('', problem);
    const digests = await this.blobs.missing(tree);
    if (digests.length > 0) throw fault(pluginRegistry.installPlugin, 'BLOB_MISSING', { digests });
    const files = { paths: tree.map(({ path }) => path), texts: await this.texts(tree), here: this.here.here };
    const { found, signature } = refusing(() => understand(files, { tree, isArchive: request.archive !== undefined }));
    const signer = await this.verification.signerOf(found.tree, signature);
    await this.repository.savePackage(found);
    return { ...found, signer };
  }

  private async texts(tree: readonly FileEntry[]): Promise<ReadonlyMap<string, string | null>> {
    const texts = new Map<string, string | null>();
    for (const { path, bytes, digest } of tree.filter((file) => isRead(file.path)))
      texts.set(path, bytes > TEXT_BYTES ? null : ((await this.blobs.read(digest))?.toString('utf8') ?? null));
    return texts;
  }

  private async unpack(digest: string): Promise<FileEntry[]> {
    const archive = await this.blobs.read(digest);
    if (archive === undefined) throw fault(pluginRegistry.installPlugin, 'BLOB_MISSING', { digests: [digest] });
    let unpacked: ReadonlyMap<string, Unpacked>;
    try {
      unpacked = unpackArchive(archive);
    } catch (error) {
      if (error instanceof ArchiveRefused) throw fault(pluginRegistry.installPlugin, 'ARCHIVE_REFUSED', { reason: error.message });
      throw error;
    }
    const root = rootOf([...unpacked.keys()]);
    const contents = new Map<string, Uint8Array>();
    const files: FileEntry[] = [];
    for (const [path, { bytes, executable }] of unpacked) {
      if (!path.startsWith(root)) continue;
      const mode = executable ? ('executable' as const) : ('file' as const);
      const entry = { path: path.slice(root.length), mode, bytes: bytes.byteLength, digest: digestOfBytes(bytes) };
      contents.set(entry.digest, bytes);
      files.push(entry);
    }
    const problem = treeProblem(files, PACKAGE_LIMITS);
    if (problem !== undefined) throw invalid('', problem);
    await this.blobs.addAll(contents);
    return files;
  }
}

function understand(
  files: PackageFiles,
  of: { readonly tree: readonly FileEntry[]; readonly isArchive: boolean },
): { readonly found: Package; readonly signature: Signature | undefined } {
  compareChecksums(files, of.tree);
  const signature = signatureOf(files);
  const manifest = readManifest(files);
  const programs = new Set(manifest.servers.flatMap(({ transport }) => (transport.type === 'stdio' ? [transport.command] : [])));
  // Not every archive says which of its files may be run.
  const tree = of.isArchive
    ? of.tree.map((file): FileEntry => (programs.has(`./${file.path}`) ? { ...file, mode: 'executable' } : file))
    : of.tree;
  return { found: { digest: treeDigest(tree), tree, manifest }, signature };
}

/** Where the package begins in an archive: at the top, or in the one folder that holds everything. */
function rootOf(paths: readonly string[]): string {
  if (isRoot(paths, '')) return '';
  const folders = new Set(paths.map((path) => path.slice(0, path.indexOf('/') + 1)));
  return [...folders].find((folder) => isRoot(paths, folder)) ?? '';
}

function refusing<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof PackageRefused) throw invalid(error.path, error.reason);
    throw error;
  }
}

function invalid(path: string, reason: string) {
  return fault(pluginRegistry.installPlugin, 'PLUGIN_INVALID', { path, reason });
}
