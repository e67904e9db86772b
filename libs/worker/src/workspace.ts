import { CommandTools } from './workspace/command-tools.js';
import { fileTools } from './workspace/file-tools.js';
import { Guard } from './workspace/guard.js';
import { searchTools } from './workspace/search-tools.js';
import { machine, type Volume } from './workspace/volume.js';
import { Workspace } from './workspace/workspace.js';
import type { WorkerTool } from './tools.js';

export interface WorkspaceOptions {
  /** The folder below which each session, and each workspace, has a folder of its own. Made where it is missing. */
  readonly root: string;
  /** Folders of workspaces by their ids, in place of those below `root`; a workspace that is not named here is not on this worker. */
  readonly workspaces?: Readonly<Record<string, string>>;
  /** Whether files outside may be reached where the gateway lets a call: by a person's approval, or in full access. @default false */
  readonly outside?: boolean;
  /** Only these tools. @default all */
  readonly tools?: readonly WorkspaceToolName[];
  /** @default '/bin/sh' */
  readonly shell?: string;
  /** A program that each command is started through, with its arguments: a sandbox, a limiter. @default none */
  readonly launcher?: readonly string[];
  /** Variables that commands get beside PATH, LANG, TERM, HOME and PWD; the worker's own are not handed on. */
  readonly env?: Readonly<Record<string, string>>;
  /** The user whom commands run as; the worker must be root. @default the worker's own */
  readonly runAs?: { readonly uid: number; readonly gid: number };
  /** What is kept of one command's output. @default 16 MiB */
  readonly outputBytes?: number;
  /** After this time a command is ended that asks for none. @default 120_000 */
  readonly timeoutMs?: number;
  /** After this time a background process is ended. @default 30 minutes */
  readonly processMs?: number;
  /** Another file system than the machine's. */
  readonly volume?: Volume;
}

export type WorkspaceToolName = 'read' | 'write' | 'edit' | 'ls' | 'glob' | 'grep' | 'exec' | 'process';
export type { Volume };

/**
 * The tools that act in a session's folder: `read`, `write`, `edit`, `ls`, `glob`, `grep`, `exec`, `process`, to be given to `work()`. Nothing is opened
 * but what the gateway decided on, as it was when it decided. Throws where the platform cannot hold them to that.
 */
export function workspace(options: WorkspaceOptions): WorkerTool[] {
  if (process.platform === 'win32') throw new Error('workspace tools need Linux or macOS');
  const { root, workspaces, volume = machine, runAs: owner } = options;
  const files = new Workspace({ root, workspaces, volume, owner, outside: options.outside ?? false });
  const guard = new Guard();
  const commands = new CommandTools(files, guard, {
    root,
    shell: options.shell ?? '/bin/sh',
    command: { launcher: options.launcher ?? [], env: options.env ?? {}, owner },
    outputBytes: options.outputBytes ?? 16 * 1024 * 1024,
    timeoutMs: options.timeoutMs ?? 120_000,
    processMs: options.processMs ?? 30 * 60_000,
  });
  const stop = async (runId: string | null): Promise<void> => {
    await commands.stop(runId);
    if (runId !== null) return;
    await guard.close();
    await files.folders.close();
  };
  const all = [...fileTools(files), ...searchTools(files), ...commands.tools()];
  const wanted: readonly string[] | undefined = options.tools;
  const [first, ...others] = wanted === undefined ? all : all.filter(({ definition }) => wanted.includes(definition.name));
  const endSession = (sessionId: string): Promise<void> => commands.endSession(sessionId);
  return first === undefined ? [] : [{ ...first, stop, endSession, holds: (place) => files.holds(place) }, ...others];
}
