// `npm test`: builds what has changed (some tests run the built programs and kill them), makes sure of a nats-server, runs Jest.
// Arguments go to Jest: `npm test -- libs/bus`.
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const say = (line) => process.stdout.write(`ambit  ${line}\n`);

// Again, for machines where npm is told to run no script before another one; what is installed costs nothing.
await import('./bootstrap.mjs');
const { build } = await import('./build.mjs');
await build(say);
if (process.env.NATS_URL === undefined) {
  const { findNatsServer } = await import('../libs/embedded/dist/index.js');
  // Once here, so that the files that run side by side do not each fetch one.
  await findNatsServer({ cacheDir: join(root, '.ambit', 'bin'), report: say }).catch((error) => {
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  });
}
// One PostgreSQL for the whole run: each file copies its database from a migrated template, which takes a tenth of making a cluster.
const database = process.env.AMBIT_TEST_POSTGRES_URL ? undefined : await startDatabase();

async function startDatabase() {
  const { startPostgres } = await import('../libs/testing/dist/index.js');
  return startPostgres();
}

const jest = spawn(
  process.execPath,
  [
    '--experimental-vm-modules',
    '--disable-warning=ExperimentalWarning',
    join(root, 'node_modules/jest/bin/jest.js'),
    ...process.argv.slice(2),
  ],
  {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...(database === undefined ? {} : { AMBIT_TEST_POSTGRES_URL: database.url }) },
  },
);
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => jest.kill(signal));
jest.once('exit', (code, signal) => {
  void (database?.stop() ?? Promise.resolve()).finally(() => process.exit(signal === null ? (code ?? 1) : 1));
});
