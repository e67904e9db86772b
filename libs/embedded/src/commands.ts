import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

export interface CommandResult {
  readonly ok: boolean;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command to its end; never throws for a command that is missing, fails or takes longer than `timeoutMs`. */
export function runCommand(
  command: string,
  args: readonly string[],
  options: { readonly timeoutMs: number; readonly cwd?: string },
): Promise<CommandResult> {
  return new Promise((resolve) => {
    execFile(command, [...args], { timeout: options.timeoutMs, cwd: options.cwd, maxBuffer: 4 * 1024 * 1024 }, (error, stdout, stderr) => {
      resolve({ ok: error === null, stdout, stderr: stderr === '' && error !== null ? error.message : stderr });
    });
  });
}

/** The absolute path of a program on PATH. */
export async function findOnPath(program: string): Promise<string | undefined> {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    if (folder === '') continue;
    const candidate = join(folder, program);
    const isExecutable = await access(candidate, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isExecutable) return candidate;
  }
  return undefined;
}
