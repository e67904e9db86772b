// `npm run chaos -- [--seed N] [--minutes N | --long] [--json] [--record]`: kills processes of a running system under load, then checks the books.
// Without a length it is the short form: every kind of process twice, in a minute and a half. `--record` keeps what it says in
// test/chaos/RESULTS.md.
import { spawn } from 'node:child_process';
import { mkdtempSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

await import('./bootstrap.mjs');
const { build } = await import('./build.mjs');
const { recordOf, reportOf } = await import('./chaos/report.mjs');
const { machineOf } = await import('./machine.mjs');

const SHORT_S = 94;
const LONG_MINUTES = 60;
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { values: given } = parseArgs({
  options: {
    seed: { type: 'string' },
    minutes: { type: 'string' },
    long: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    record: { type: 'boolean', default: false },
  },
});
const say = (line) => process.stderr.write(`chaos  ${line}\n`);
const seed = numberOf('seed', given.seed) ?? Math.floor(Math.random() * 2 ** 31);
const minutes = numberOf('minutes', given.minutes) ?? (given.long ? LONG_MINUTES : undefined);
const seconds = minutes === undefined ? SHORT_S : minutes * 60;

function numberOf(name, text) {
  if (text === undefined) return undefined;
  const number = Number(text);
  if (number >= 0 && Number.isFinite(number)) return number;
  say(`--${name} is a number, not "${text}"`);
  process.exit(2);
}

await build(say);
const folder = mkdtempSync(join(tmpdir(), 'ambit-chaos-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const resultFile = join(folder, 'result.json');
const optionsFile = join(folder, 'options.json');
writeFileSync(optionsFile, JSON.stringify({ seed, seconds, resultFile }));
const command = `npm run chaos -- --seed ${seed}${minutes === undefined ? '' : ` --minutes ${minutes}`}`;
const loadBefore = loadavg();
say(`seed ${seed}; the same again: ${command}`);

// The harness is written like the scenarios, on the sources: Jest is what runs these.
const jest = spawn(
  process.execPath,
  [
    ...['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', join(root, 'node_modules/jest/bin/jest.js')],
    ...['--runInBand', '--testMatch', '<rootDir>/test/chaos/*.chaos.ts', '--', 'test/chaos'],
  ],
  { cwd: root, stdio: ['ignore', 2, 2], env: { ...process.env, AMBIT_TEST_POSTGRES_URL: '', AMBIT_CHAOS_OPTIONS: optionsFile } },
);
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => jest.kill(signal));
jest.once('exit', async (code) => {
  if (!existsSync(resultFile)) {
    say('it did not come to an end');
    process.exit(1);
  }
  const machine = machineOf(loadBefore);
  const result = { command, seed, seconds, machine, ...JSON.parse(readFileSync(resultFile, 'utf8')) };
  (given.json ? process.stderr : process.stdout).write(`${reportOf(result)}\n`);
  if (given.record) await keep(result);
  if (given.json) process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
  process.exit(code ?? 1);
});

async function keep(result) {
  const file = join(root, 'test', 'chaos', 'RESULTS.md');
  const { format, resolveConfig } = await import('prettier');
  writeFileSync(file, await format(recordOf(result), { ...(await resolveConfig(file)), parser: 'markdown' }));
}
