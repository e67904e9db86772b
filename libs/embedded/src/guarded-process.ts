import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

// Beside src and dist, so that it is the same file from either. Its text is handed to the shell: the user that a server
// runs as may not be able to open anything of ours, in a home folder for instance.
const GUARD = readFileSync(fileURLToPath(new URL('../guard.sh', import.meta.url)), 'utf8');

export interface GuardedOptions {
  readonly command: string;
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  /** Runs the process as this user and group; only root may set it. */
  readonly uid?: number;
  readonly gid?: number;
  /** What asks the process to end in order. @default 'TERM' */
  readonly stopSignal?: 'TERM' | 'INT';
  /** Between asking and killing. @default 5 */
  readonly graceSeconds?: number;
  /** Its output is appended to this file, or goes where this process's own goes. @default the last lines are kept in memory */
  readonly output?: { readonly file: string } | 'inherit';
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A child process that cannot outlive its starter. */
export interface GuardedProcess {
  readonly pid: number;
  /** Settles when the process has ended, however it ended. */
  readonly exited: Promise<Exit>;
  /** The last lines it wrote, for an error message. */
  lastOutput(): string;
  /** Asks the process to end, kills its group after the grace time, and answers when it has gone. */
  stop(): Promise<Exit>;
}

const KEPT_OUTPUT_CHARACTERS = 8_192;

/** Starts a process in a group of its own, with a watcher that ends the group when this process ends, however that happens. */
export function startGuarded(options: GuardedOptions): GuardedProcess {
  const signal = options.stopSignal ?? 'TERM';
  const graceSeconds = options.graceSeconds ?? 5;
  const file = typeof options.output === 'object' ? options.output.file : undefined;
  const log = file === undefined ? undefined : openSync(file, 'a', 0o600);
  const output = log ?? (options.output === 'inherit' ? 'inherit' : 'pipe');
  const child = spawn('/bin/sh', ['-c', GUARD, 'guard', signal, String(graceSeconds), options.command, ...(options.args ?? [])], {
    detached: true,
    stdio: ['pipe', output, output],
    env: options.env ?? process.env,
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.uid === undefined ? {} : { uid: options.uid }),
    ...(options.gid === undefined ? {} : { gid: options.gid }),
  });
  if (log !== undefined) closeSync(log);
  const { pid } = child;
  if (pid === undefined) throw new Error(`could not start ${options.command}: /bin/sh is needed`);

  let kept = '';
  const keep = (chunk: Buffer): void => {
    kept = (kept + chunk.toString()).slice(-KEPT_OUTPUT_CHARACTERS);
  };
  child.stdout?.on('data', keep);
  child.stderr?.on('data', keep);
  child.stdin?.on('error', () => undefined);

  const exited = new Promise<Exit>((resolve) => {
    child.once('exit', (code, exitSignal) => {
      // Ends the watcher, which ends whatever the process left in its group.
      child.stdin?.destroy();
      resolve({ code, signal: exitSignal });
    });
    child.once('error', () => resolve({ code: 127, signal: null }));
  });

  return {
    pid,
    exited,
    lastOutput: () => (file === undefined ? kept : readFileSync(file, 'utf8').slice(-KEPT_OUTPUT_CHARACTERS)),
    async stop() {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill(`SIG${signal}`);
        const kill = setTimeout(() => killGroup(pid), graceSeconds * 1_000);
        await exited;
        clearTimeout(kill);
      }
      return exited;
    },
  };
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The group has gone already.
  }
}
