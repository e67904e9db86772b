import { spawn, type ChildProcess } from 'node:child_process';
import { Duplex } from 'node:stream';
import type { Guard } from './guard.js';

export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

export interface GroupSpec {
  /** A program and its arguments, handed on as they stand. */
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly owner: { readonly uid: number; readonly gid: number } | undefined;
  /** Stands in the environment of all that it starts: 16 to 64 hexadecimal digits. */
  readonly mark: string;
  /** `joined`: errors come with the output and nothing is read; `apart`: it is written to, and errors come by themselves. */
  readonly streams: 'joined' | 'apart';
}

/** A process group that its guard knows. */
export interface Group {
  readonly child: ChildProcess;
  readonly pid: number;
  /** Resolves when the program itself has ended. */
  readonly exited: Promise<Exit>;
  /** Ends it with everything it started; resolves when nothing is left and its output is complete. */
  end(): Promise<void>;
}

/** Waits until its group is guarded, then becomes the program; when the worker dies first, it is nothing. */
const GATE = { joined: 'read -r go <&3 || exit 125; exec 3<&-; exec "$@" 2>&1', apart: 'read -r go <&3 || exit 125; exec 3<&-; exec "$@"' };

/** Starts a program in a process group of its own. Throws where it cannot be started or guarded. */
export async function startGroup({ argv, cwd, env, owner, mark, streams }: GroupSpec, guard: Guard): Promise<Group> {
  const child = spawn('/bin/sh', ['-c', GATE[streams], 'ambit', ...argv], {
    cwd,
    env: { ...env, AMBIT_CALL: mark },
    detached: true,
    stdio: streams === 'joined' ? ['ignore', 'pipe', 'ignore', 'pipe'] : ['pipe', 'pipe', 'pipe', 'pipe'],
    ...owner,
  });
  const { pid } = child;
  const exited = new Promise<Exit>((resolve) => {
    child.once('error', () => resolve({ code: 127, signal: null }));
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  const closed = new Promise<void>((resolve) => {
    child.once('error', () => resolve());
    child.once('close', () => resolve());
  });
  if (pid === undefined) throw new Error(`${argv[0] ?? 'nothing'} could not be started`);
  const gate = gateOf(child.stdio[3]);
  gate.on('error', () => undefined);
  try {
    await guard.add(pid, mark);
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
  gate.end('go\n');
  let ending: Promise<void> | undefined;
  const end = async (): Promise<void> => {
    await guard.end(pid);
    // One that left the group with its environment changed could hold a pipe for ever.
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
    await closed;
  };
  return { child, pid, exited, end: () => (ending ??= end()) };
}

function gateOf(stream: unknown): Duplex {
  if (stream instanceof Duplex) return stream;
  throw new Error('the program has no gate');
}
