import type { OpenFolder } from './open-folder.js';
import { startGroup, type Exit } from './group.js';
import type { Guard } from './guard.js';
import type { Output } from './output.js';

export interface CommandOptions {
  /** A program and its arguments that each command is started through. */
  readonly launcher: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly owner: { readonly uid: number; readonly gid: number } | undefined;
}

export interface CommandSpec {
  /** A program and its arguments. */
  readonly argv: readonly string[];
  readonly folder: OpenFolder;
  /** The session's own folder, which the command takes for its home. */
  readonly home: string;
  /** Stands in the environment of all that the command starts. */
  readonly mark: string;
  readonly output: Output;
  /** Where the files of a skill stand that the command is a script of. */
  readonly skillRoot?: string | undefined;
}

/** A command that runs in a process group of its own. */
export interface RunningCommand {
  readonly pid: number;
  readonly output: Output;
  /** Resolves when the command itself has ended. */
  readonly exited: Promise<Exit>;
  /** Ends it with everything it started; resolves when nothing is left and its output is complete. */
  end(): Promise<void>;
}

/** Starts a command in an opened folder. */
export async function startCommand(spec: CommandSpec, options: CommandOptions, guard: Guard): Promise<RunningCommand> {
  const { argv, folder, home, mark, output, skillRoot } = spec;
  const { pid, child, exited, end } = await startGroup(
    {
      argv: [...options.launcher, ...argv],
      cwd: folder.here,
      env: {
        ...environmentOf(options.env, { home, folder: folder.place.path }),
        ...(skillRoot === undefined ? {} : { SKILL_ROOT: skillRoot }),
      },
      owner: options.owner,
      mark,
      streams: 'joined',
    },
    guard,
  );
  child.stdout?.on('data', (chunk: Buffer) => output.push(chunk));
  return { pid, output, exited, end };
}

/** What a program of the workspace finds in its environment: nothing of the worker's but where programs are, and the language. */
export function environmentOf(
  env: Readonly<Record<string, string>>,
  { home, folder }: { readonly home: string; readonly folder: string },
): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin',
    LANG: process.env.LANG ?? 'C.UTF-8',
    TERM: 'dumb',
    ...env,
    HOME: home,
    PWD: folder,
  };
}
