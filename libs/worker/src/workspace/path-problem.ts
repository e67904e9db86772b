import { Fault, refusals } from '@ambit/contracts';
import { codeOf } from './volume.js';

type Kind = 'outside' | 'closed' | 'changed' | 'missing' | 'not-a-folder' | 'not-a-file' | 'too-many-links';

const WORDS: Readonly<Record<Kind, string>> = {
  outside: 'it leads out of the workspace',
  closed: 'it is closed to everybody',
  changed: 'it changed while it was opened',
  missing: 'there is nothing of that name',
  'not-a-folder': 'it is no folder',
  'not-a-file': 'it is no ordinary file',
  'too-many-links': 'it is behind too many links',
};

/** Why a path was not reached. */
export class PathProblem extends Error {
  override readonly name = 'PathProblem';
  constructor(
    readonly kind: Kind,
    readonly path: string,
  ) {
    super(`${path}: ${WORDS[kind]}`);
  }
}

const SYSTEM: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'not permitted',
  ENOENT: 'there is nothing of that name',
  EISDIR: 'it is a folder',
  ENOTDIR: 'it is no folder',
  ENAMETOOLONG: 'the name is too long',
  ENOSPC: 'no space is left',
  EROFS: 'the volume is read-only',
  EMFILE: 'too many files are open; try again',
  ETXTBSY: 'the file is being executed',
};

/** The fault that crosses the bus: what was wrong with the path, and nothing of the machine around it. */
export function asFault(error: unknown, path: string): unknown {
  if (error instanceof PathProblem) {
    if (error.kind === 'outside' || error.kind === 'closed') return new Fault('OUTSIDE_WORKSPACE', refusals.OUTSIDE_WORKSPACE, { path });
    if (error.kind === 'changed') return new Fault('TARGET_CHANGED', refusals.TARGET_CHANGED);
    return toolFailed(error.message);
  }
  // A fault has a code too, and says by itself what was wrong.
  const code = error instanceof Fault ? '' : codeOf(error);
  return code === '' ? error : toolFailed(`${path}: ${SYSTEM[code] ?? code}`);
}

/** A call that ended without doing what it was asked. */
export function toolFailed(reason: string): Fault {
  return new Fault('TOOL_FAILED', refusals.TOOL_FAILED, { reason: reason.slice(0, 500) }, reason.slice(0, 500));
}
