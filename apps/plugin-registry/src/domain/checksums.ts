import { SIGNATURE_FILE, SIGNATURE_FORMAT } from '@ambit/capability';
import type { FileEntry } from '@ambit/contracts';
import { z } from 'zod';
import { jsonOf, PackageRefused, parsed, type PackageFiles } from './package-files.js';

const CHECKSUMS = 'checksums.json';
const Checksums = z.record(z.string().max(1_024), z.string().regex(/^[0-9a-f]{64}$/, 'a sha256 of 64 lower-case hexadecimal digits'));
const Signature = z.strictObject({
  format: z.literal(SIGNATURE_FORMAT),
  key: z.string().regex(/^[0-9a-f]{64}$/, 'the sha256 of the public key'),
  signature: z.base64().length(88),
});
/** What a package says of who signed it; `key` is the sha256 of the raw public key. */
export type Signature = z.output<typeof Signature>;

/** Compares the files of a package with its list of their checksums, where it has one. Throws `PackageRefused`. */
export function compareChecksums(files: PackageFiles, tree: readonly FileEntry[]): void {
  const json = jsonOf(files, CHECKSUMS);
  if (json === undefined) return;
  const listed = new Map(Object.entries(parsed(Checksums, json, CHECKSUMS)));
  const apart = tree.filter(({ path }) => path !== CHECKSUMS && path !== SIGNATURE_FILE);
  for (const { path, digest } of apart) {
    const checksum = listed.get(path);
    if (checksum === undefined) throw new PackageRefused(path, `it is not in ${CHECKSUMS}`);
    if (checksum !== digest) throw new PackageRefused(path, `it is not the file that ${CHECKSUMS} lists`);
    listed.delete(path);
  }
  for (const path of listed.keys()) throw new PackageRefused(path.slice(0, 200), `${CHECKSUMS} lists it, and the package does not have it`);
}

/** The signature that a package brings; undefined where it brings none. Throws `PackageRefused`. */
export function signatureOf(files: PackageFiles): Signature | undefined {
  const json = jsonOf(files, SIGNATURE_FILE);
  return json === undefined ? undefined : parsed(Signature, json, SIGNATURE_FILE);
}
