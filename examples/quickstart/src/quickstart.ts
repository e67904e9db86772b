// The main job, end to end, on real MCP servers. `npm start` runs it; by hand, beside a running stack:
//   node examples/quickstart/dist/quickstart.js [--once]
import { readFile } from 'node:fs/promises';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { AmbitClient } from '@ambit/client';
import { z } from 'zod';
import { Children } from './children.js';
import { mainJob } from './main-job.js';
import { bold, chapter, dim, tell } from './narrator.js';
import { revocation } from './revocation.js';
import { prepare } from './setting.js';

const isOnce = process.argv.includes('--once');
const children = new Children();

/** What the stack says of itself; the environment goes first. */
async function whereTheStackIs(): Promise<{ readonly url: string; readonly token: string; readonly natsUrl: string }> {
  const { AMBIT_URL, AMBIT_TOKEN, NATS_URL, AMBIT_HOME } = process.env;
  if (AMBIT_URL !== undefined && AMBIT_TOKEN !== undefined && NATS_URL !== undefined)
    return { url: AMBIT_URL, token: AMBIT_TOKEN, natsUrl: NATS_URL };
  const home = AMBIT_HOME ?? fileURLToPath(new URL('../../../.ambit', import.meta.url));
  const stack = z.object({ apiUrl: z.string(), tokenFile: z.string(), natsUrl: z.string() }).parse(
    JSON.parse(
      await readFile(`${home}/stack.json`, 'utf8').catch(() => {
        throw new Error('no stack runs here; `npm start` starts one');
      }),
    ),
  );
  return { url: stack.apiUrl, token: (await readFile(stack.tokenFile, 'utf8')).trim(), natsUrl: stack.natsUrl };
}

async function story(): Promise<void> {
  const { url, token, natsUrl } = await whereTheStackIs();
  const setting = await prepare(new AmbitClient({ url, token }), natsUrl, children);
  await mainJob(setting, isOnce);
  await revocation(setting);
  chapter('That was the main job; every line with a ✓ was checked.');
}

const asked = Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
let code = 0;
try {
  await Promise.race([
    asked,
    story().then(async () => {
      if (isOnce) return;
      tell('The worker and the HTTP server go on until you stop this (Ctrl-C). Try:');
      tell(bold('  npx ambit send guide "use mcp__everything__echo with {\\"message\\":\\"hi\\"}" --as user:alice --follow'));
      tell(bold('  npx ambit explain guide mcp__greeter-hello__echo'));
      tell(dim('  npx ambit plugin enable greeter     (the next `npm start` does that by itself)'));
      await asked;
    }),
  ]);
} catch (error) {
  process.stderr.write(`\n${error instanceof Error ? error.message : String(error)}\n`);
  code = 1;
}
await children.stop();
process.exit(code);
