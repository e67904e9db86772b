import { join } from 'node:path';
import { startGuarded } from '@ambit/embedded';
import { say } from './say.js';
import { repository } from './stack-folder.js';

/** Runs `ambit init` with these arguments and variables; repeats what it says. Throws an Error with its words when it fails. */
export async function runInit(args: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const init = startGuarded({
    command: process.execPath,
    args: [join(repository, 'apps/init/dist/main.js'), ...args],
    env: { ...process.env, ...env },
  });
  const exit = await init.exited;
  const lines = init
    .lastOutput()
    .trimEnd()
    .split('\n')
    .filter((line) => line !== '');
  if (exit.code !== 0) throw new Error(`ambit init failed:\n${lines.join('\n')}`);
  for (const line of lines) say(`  ${line}`);
}
