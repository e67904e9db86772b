import { spawn } from 'node:child_process';
import { Duplex } from 'node:stream';
import type { OpenFolder } from './open-folder.js';
import type { Guard } from './guard.js';
import { Output } from './output.js';

export interface CommandOptions {
  readonly shell: string;
  /** A program and its arguments that each command is started through. */
  readonly launcher: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly owner: { readonly uid: number; readonly gid: number } | undefined;
}

export interface CommandSpec {
  readonly command: string;
  readonly folder: OpenFolder;
  /** The session's own folder, which the command takes for its home. */
  readonly home: string;
  /** Stands in the environment of all that the command starts. */
  readonly mark: string;
  readonly output: Output;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** Waits until its group is guarded, then becomes the command; when the worker dies first, it is nothing. */
const GATE = 'read -r go <&3 || exit 125; exec 3<&-; exec "$@" 2>&1';

/** A command that runs in a process group of its own. */
export interface RunningCommand {
  readonly pid: number;
  readonly output: Output;
  /** Resolves when the command itself has ended. */
  readonly exited: Promise<Exit>;
  /** Ends it with everything it started; resolves when nothing is left and its output is complete. */
  end(): Promise<void>;
}

/** Starts a shell command in an opened folder. */
export async function startCommand(spec: CommandSpec, options: CommandOptions, guard: Guard): Promise<RunningCommand> {
  const { command, folder, home, mark, output } = spec;
  const child = spawn('/bin/sh', ['-c', GATE, 'ambit', ...options.launcher, options.shell, '-c', command], {
    cwd: folder.here,
    env: {
      PATH: process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin',
      LANG: process.env.LANG ?? 'C.UTF-8',
      TERM: 'dumb',
      ...options.env,
      HOME: home,
      PWD: folder.place.path,
      AMBIT_CALL: mark,
    },
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore', 'pipe'],
    ...options.owner,
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
  if (pid === undefined) throw new Error(`the command could not be started with ${options.shell}`);
  child.stdout?.on('data', (chunk: Buffer) => output.push(chunk));
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
    // One that left the group with its environment changed could hold the pipe for ever.
    child.stdout?.destroy();
    await closed;
  };
  return {
    pid,
    output,
    exited,
    end: () => (ending ??= end()),
  };
}

function gateOf(stream: unknown): Duplex {
  if (stream instanceof Duplex) return stream;
  throw new Error('the command has no gate');
}
