import type { FileEntry } from '@ambit/contracts';
import { canonicalJson, sha256Hex } from '@ambit/capability';

export const TREE_LIMITS = { files: 512, bytes: 16 * 1024 * 1024, depth: 32 } as const;
const RESERVED = /^(con|prn|aux|nul|com[1-9]|lpt[1-9])(\..*)?$/i;

/** Says what is wrong with a tree of files, or undefined: paths stay inside, differ after folding, and are within limits. */
export function treeProblem(files: readonly FileEntry[]): string | undefined {
  if (files.length === 0) return 'there are no files';
  if (files.length > TREE_LIMITS.files) return `there are ${files.length} files; at most ${TREE_LIMITS.files} are taken`;
  const total = files.reduce((sum, file) => sum + file.bytes, 0);
  if (total > TREE_LIMITS.bytes) return `the files have ${total} bytes; at most ${TREE_LIMITS.bytes} are taken`;
  const seen = new Set<string>();
  for (const { path } of files) {
    const problem = pathProblem(path);
    if (problem !== undefined) return `"${path.slice(0, 200)}": ${problem}`;
    const folded = path.normalize('NFC').toLowerCase();
    if (seen.has(folded)) return `"${path.slice(0, 200)}" stands twice, at least for some file systems`;
    seen.add(folded);
  }
  return undefined;
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
  return sha256Hex(canonicalJson(sorted.map(({ path, mode, bytes, digest }) => ({ path, mode, bytes, digest }))));
}
