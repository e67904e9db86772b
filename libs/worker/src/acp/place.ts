import { RequestError } from '@agentclientprotocol/sdk';
import { Fault } from '@ambit/contracts';
import type { Folders, Place } from '../workspace/folders.js';
import { asFault, PathProblem } from '../workspace/path-problem.js';
import { walk, type Spot } from '../workspace/walk.js';

/** Reaches a path of a session's workspace: absolute, as the protocol has it, and never out of it. Throws an error of the protocol. */
export async function reach<T>(
  at: { readonly folders: Folders; readonly place: Place },
  path: string,
  use: (spot: Spot, home: string) => Promise<T>,
): Promise<T> {
  if (!path.startsWith('/')) throw RequestError.invalidParams({ path }, 'the path is absolute');
  if (path.split('/').includes('..')) throw RequestError.invalidParams({ path }, 'the path has no ".." in it');
  try {
    return await at.folders.use(at.place, (root) => walk({ root, closed: CLOSED }, path, (spot) => use(spot, root.place.path)));
  } catch (error) {
    throw protocolError(error, path);
  }
}

/** Folders that belong to the platform. */
const CLOSED: ReadonlySet<string> = new Set(['.agent-scopes']);

function protocolError(error: unknown, path: string): unknown {
  if (error instanceof RequestError) return error;
  if (error instanceof PathProblem && error.kind === 'missing') return RequestError.resourceNotFound(path);
  const fault = asFault(error, path);
  return fault instanceof Fault ? RequestError.invalidParams({ path, code: fault.code }, fault.message) : error;
}
