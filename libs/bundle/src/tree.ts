import type { FileEntry } from '@ambit/contracts';
import { canonicalJson, RECORD_BOUNDS, sha256Hex } from '@ambit/capability';

/** Of a skill. */
export const TREE_LIMITS = { files: 512, bytes: 16 * 1024 * 1024, depth: 32 } as const;
/** Of a plugin package, which may bring along what its servers are made of. */
export const PACKAGE_LIMITS = { files: 4_096, bytes: 64 * 1024 * 1024 } as const;
const RESERVED = /^(con|prn|aux|nul|com[1-9]|lpt[1-9])(\..*)?$/i;

/** Says what is wrong with a tree of files, or undefined: paths stay inside, differ after folding, and are within limits. */
export function treeProblem(
  files: readonly FileEntry[],
  limits: { readonly files: number; readonly bytes: number } = TREE_LIMITS,
): string | undefined {
  if (files.length === 0) return 'there are no files';
  if (files.length > limits.files) return `there are ${files.length} files; at most ${limits.files} are taken`;
  const total = files.reduce((sum, file) => sum + file.bytes, 0);
  if (total > limits.bytes) return `the files have ${total} bytes; at most ${limits.bytes} are taken`;
  return pathsProblem(files.map(({ path }) => path));
}

/** Why paths may not stand beside each other, or undefined: each may be taken, no two are one after folding, none lies below a file. */
export function pathsProblem(paths: readonly string[]): string | undefined {
  const seen = new Set<string>();
  const folders = new Map<string, string>();
  for (const path of paths) {
    const shown = path.slice(0, 200);
    const problem = pathProblem(path);
    if (problem !== undefined) return `"${shown}": ${problem}`;
    const folded = foldedPath(path);
    if (seen.has(folded)) return `"${shown}" stands twice, at least for some file systems`;
    seen.add(folded);
    for (let end = folded.lastIndexOf('/'); end > 0; end = folded.lastIndexOf('/', end - 1)) folders.set(folded.slice(0, end), shown);
  }
  for (const [folder, path] of folders) if (seen.has(folder)) return `"${path}" lies below a file`;
  return undefined;
}

/** The same for two paths that some file systems take for one: by normal form, and by case in every alphabet. */
export function foldedPath(path: string): string {
  return path.normalize('NFC').toUpperCase().toLowerCase().normalize('NFC');
}

/** Why a relative path may not be taken, or undefined. */
export function pathProblem(path: string): string | undefined {
  if (path.length > 1_024) return 'a path has at most 1,024 characters';
  // eslint-disable-next-line no-control-regex -- control characters are exactly what is refused
  if (/[\u0000-\u001f\u007f\\]/.test(path)) return 'a path may not hold control characters or backslashes';
  const parts = path.split('/');
  if (parts.length > TREE_LIMITS.depth) return `a path has at most ${TREE_LIMITS.depth} parts`;
  if (/^[a-z]:/i.test(path) || parts.some((part) => part === '' || part === '.' || part === '..'))
    return 'a path must be relative and stay inside the skill';
  return parts.some((part) => RESERVED.test(part)) ? 'the name is reserved on some systems' : undefined;
}

/** The digest of a version: its files by path, in code-unit order. */
export function treeDigest(files: readonly FileEntry[]): string {
  const sorted = [...files].sort((left, right) => (left.path < right.path ? -1 : left.path > right.path ? 1 : 0));
  return sha256Hex(
    canonicalJson(
      sorted.map(({ path, mode, bytes, digest }) => ({ path, mode, bytes, digest })),
      RECORD_BOUNDS,
    ),
  );
}
