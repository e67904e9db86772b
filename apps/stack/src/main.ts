import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { say } from './say.js';
import { Stack } from './stack.js';
import { repository, StackFolder } from './stack-folder.js';

const { values } = parseArgs({
  options: {
    once: { type: 'boolean', default: false },
    bare: { type: 'boolean', default: false },
    replicas: { type: 'string', multiple: true, default: [] },
    help: { type: 'boolean', default: false },
  },
});

if (values.help) {
  process.stdout.write(
    [
      'npm start [-- OPTION…]   the whole of Ambit on this machine',
      '  --once                 run the quickstart job, then stop everything; the exit code is the job’s',
      '  --bare                 start the stack without the quickstart job',
      '  --replicas NAME=N      start N processes of a service (may be repeated)',
      'NATS_URL and DATABASE_URL name servers of your own; AMBIT_HOME is where data lies (.ambit).',
      'AMBIT_NATS_SYNC is how often nats-server syncs to the disk: a duration (1s), or always, before each acknowledgement.',
      '',
    ].join('\n'),
  );
  process.exit(0);
}

const replicas = new Map(
  values.replicas.map((text): [string, number] => [text.split('=')[0] ?? '', Math.max(1, Number(text.split('=')[1] ?? 1) || 1)]),
);
const stack = new Stack(new StackFolder(process.env.AMBIT_HOME ?? join(repository, '.ambit')), replicas);

let signals = 0;
let exitCode = 0;
let finish: () => void = () => undefined;
const asked = new Promise<void>((resolve) => (finish = resolve));
function onSignal(signal: NodeJS.Signals): void {
  signals += 1;
  if (signals > 1) process.exit(130); // The watchers end what is left.
  say(`${signal}: stopping; once more to stop at once`);
  finish();
}
process.on('SIGINT', onSignal);
process.on('SIGTERM', onSignal);
process.on('SIGHUP', onSignal);

// npm does not end its script when it is killed itself, and then nobody would know how to stop the stack.
const parent = process.ppid;
if (process.env.npm_lifecycle_event !== undefined) {
  setInterval(() => {
    if (process.ppid !== parent) onSignal('SIGHUP');
  }, 500).unref();
}

async function run(): Promise<void> {
  await stack.start();
  const code = values.bare ? 0 : await stack.runQuickstart(values.once);
  if (values.once) exitCode = code;
  else await asked;
}

try {
  await Promise.race([run(), asked]);
} catch (error) {
  process.stderr.write(`\n${error instanceof Error ? error.message : String(error)}\n`);
  if (error instanceof Error && error.cause instanceof Error) process.stderr.write(`because: ${error.cause.message}\n`);
  exitCode = 1;
}
await stack.stop();
process.exit(exitCode);
