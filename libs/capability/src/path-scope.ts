import type { PreparedTarget } from '@ambit/contracts';
import { matchesGlob } from './glob.js';
import { foldName } from './tool-name.js';

/** Where a path leads: `closed` is a private place of an agent, which no mode and no rule opens. */
export type PathScope = 'inside' | 'outside' | 'closed';

/** Names of folders that hold agents' private files. Compared without case: on some volumes another spelling is the same folder. */
export const CLOSED_NAMES: readonly string[] = ['.agent-scopes'];

const CLOSED: ReadonlySet<string> = new Set(CLOSED_NAMES.map(foldName));

/** Judges one canonical path as a worker spelled it. What is not plainly inside is outside. */
export function pathScope(path: string): PathScope {
  const segments = path.split(/[\\/]/);
  if (segments.some(isClosedName)) return 'closed';
  const isPlain = path !== '' && !/^([\\/~]|[A-Za-z]:)/.test(path) && !path.includes('\0') && !segments.includes('..');
  return isPlain ? 'inside' : 'outside';
}

/** Tells whether a name is that of a closed folder, however it is spelled. */
export function isClosedName(name: string): boolean {
  // Windows drops dots and blanks at the end of a name.
  return CLOSED.has(foldName(name.replace(/[. ]+$/, '')));
}

/** The worst that a target touches; words of its command that name a closed folder count as touching it. */
export function targetScope({ paths, cwd, argv, command }: PreparedTarget): PathScope {
  const scopes = [...paths, ...(cwd === null ? [] : [cwd])].map(pathScope);
  // A shell’s wildcards may stand for the name without spelling it.
  const spoken = `${command ?? ''} ${argv.join(' ')}`.split(/[\s\\/'"=:,;|&<>()]+/);
  if (scopes.includes('closed') || spoken.some((word) => isClosedName(word) || mayStandForClosed(word))) return 'closed';
  return scopes.includes('outside') ? 'outside' : 'inside';
}

function mayStandForClosed(word: string): boolean {
  if (!word.startsWith('.') || !/[*?[]/.test(word)) return false;
  const glob = foldName(word)
    .replace(/\[[^\]]*\]?/g, '*')
    .replaceAll('?', '*');
  return [...CLOSED].some((name) => matchesGlob(glob, name));
}

/** Tells whether a canonical path inside the workspace stands at or below one of the folders. */
export function isUnder(path: string, folders: readonly string[]): boolean {
  if (pathScope(path) !== 'inside') return false;
  const normal = (text: string) => text.split('/').filter((segment) => segment !== '' && segment !== '.');
  const segments = normal(path);
  return folders.some((folder) => {
    const wanted = normal(folder);
    return wanted.length <= segments.length && wanted.every((segment, index) => segment === segments[index]);
  });
}
