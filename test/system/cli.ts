import { noteServed } from '@ambit/testing';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const ambit = fileURLToPath(new URL('../../apps/cli/bin/ambit.js', import.meta.url));

export interface CliAnswer {
  readonly code: number;
  readonly out: string;
  readonly errors: string;
}

/** One command of the built CLI against a system. */
export function runCli(
  system: { readonly apiUrl: string; readonly token: string },
  args: readonly string[],
  cwd?: string,
): Promise<CliAnswer> {
  const env = { PATH: process.env['PATH'] ?? '', AMBIT_URL: system.apiUrl, AMBIT_TOKEN: system.token, NO_COLOR: '1' };
  return new Promise((resolve) => {
    execFile(process.execPath, [ambit, ...args], { env, cwd, timeout: 60_000 }, (error, out, errors) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1;
      if (code === 0) noteServed();
      resolve({ code, out, errors });
    });
  });
}
