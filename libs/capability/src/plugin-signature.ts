import { canonicalJson, RECORD_BOUNDS } from './canonical.js';

/** The file of a plugin package that holds its publisher’s signature. */
export const SIGNATURE_FILE = 'signature.json';
export const SIGNATURE_FORMAT = 'ambit.plugin-signature.v1';

/** What a publisher signs with ed25519: the path and the sha256 of every file of a package but the signature itself, as canonical JSON. */
export function signedStatement(tree: readonly { readonly path: string; readonly digest: string }[]): string {
  const files = Object.fromEntries(tree.filter(({ path }) => path !== SIGNATURE_FILE).map(({ path, digest }) => [path, digest]));
  return canonicalJson({ format: SIGNATURE_FORMAT, files }, RECORD_BOUNDS);
}
