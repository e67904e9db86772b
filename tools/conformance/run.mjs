// `npm run conformance`: the public conformance suite of MCP and the MCP Inspector against the edge, in front of one server and of three whose names collide; and
// against the broker, which is the client of every server that the suite makes up. `-- --leg client` or `server` runs one of the two.
// A scenario counts only with at least one check that succeeded: one that was skipped proves nothing.
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { openStack } from '../../bench/stack.mjs';
import { Behind } from './behind.mjs';
import { Driver } from './driver.mjs';
import { inspect } from './inspect.mjs';
import { CLIENT_SUITES, SUITES } from './suites.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    leg: { type: 'string' },
    only: { type: 'string' },
    scenario: { type: 'string' },
    keep: { type: 'string' },
  },
});
const say = (line) => process.stderr.write(`${line}\n`);
const run = promisify(execFile);
const SUITE_MS = 600_000;
/** Scenarios wait for each other: that is no slowness of a client. */
const CLIENT_MS = 300_000;
const CLIENT = fileURLToPath(new URL('./client.mjs', import.meta.url));

/** Where a version of the suite is installed, which this does where it is not. */
async function programOf(version) {
  const folder = join(here, version);
  const program = join(folder, 'node_modules', '@modelcontextprotocol', 'conformance', 'dist', 'index.js');
  if (!existsSync(program)) {
    say(`installing the conformance suite ${version}`);
    await run('npm', ['ci', '--prefer-offline', '--no-audit', '--no-fund'], { cwd: folder });
  }
  return program;
}

/** The checks of every scenario that ran, by scenario. */
function checksIn(folder) {
  const found = new Map();
  for (const entry of readdirSync(folder, { recursive: true })) {
    if (basename(entry) !== 'checks.json') continue;
    const scenario = dirname(entry)
      .replace(/^server-/, '')
      .replace(/-\d{4}-\d\d-\d\dT.*$/, '');
    found.set(scenario, JSON.parse(readFileSync(join(folder, entry), 'utf8')));
  }
  return found;
}

/** `of` says of whom the suite is told: `args` for its command, `env` for what that starts. */
async function attempt({ name, version, args, baseline, scenarios: expected = 1 }, of) {
  const program = await programOf(version);
  const out = mkdtempSync(join(tmpdir(), 'ambit-conformance-'));
  const only = values.scenario === undefined ? args : ['--scenario', values.scenario];
  const { output, code } = await run(process.execPath, [program, ...of.args, ...only, '-o', out], {
    env: { ...process.env, ...of.env },
    timeout: SUITE_MS,
    maxBuffer: 64 * 1024 * 1024,
  })
    .then(({ stdout, stderr }) => ({ output: stdout + stderr, code: 0 }))
    .catch((error) => ({ output: `${error.stdout ?? ''}${error.stderr ?? ''}`, code: error.code ?? 1 }));
  const scenarios = [...checksIn(out)].map(([scenario, checks]) => {
    const withStatus = (status) => checks.filter((check) => check.status === status);
    const failures = withStatus('FAILURE').map(({ id, errorMessage }) => ({ id, errorMessage }));
    return { scenario, passed: withStatus('SUCCESS').length, failed: failures.length, warned: withStatus('WARNING').length, failures };
  });
  if (values.keep !== undefined) writeFileSync(join(values.keep, `${name}-${of.name}.log`), output);
  rmSync(out, { recursive: true, force: true });
  const isExpected = ({ scenario }) => Object.hasOwn(baseline, scenario);
  const bad = scenarios.filter((one) => (one.failed > 0 || one.passed === 0) && !isExpected(one));
  const stale = Object.keys(baseline).filter((scenario) =>
    scenarios.some((one) => one.scenario === scenario && one.failed === 0 && one.passed > 0),
  );
  const sum = (count) => scenarios.reduce((total, one) => total + one[count], 0);
  const result = {
    leg: of.leg,
    suite: name,
    against: of.name,
    passed: sum('passed'),
    failed: sum('failed'),
    warned: sum('warned'),
    scenarios: scenarios.length,
    baseline,
    bad,
    stale,
    exit: code,
    ok: scenarios.length >= (values.scenario === undefined ? expected : 1) && bad.length === 0 && stale.length === 0,
  };
  tell(result);
  return result;
}

function tell({ suite, against, passed, failed, scenarios, bad, stale }) {
  say(`${suite} against ${against}: ${passed} checks passed, ${failed} failed in ${scenarios} scenarios`);
  for (const { scenario, passed: succeeded, failures } of bad)
    say(
      `  ${scenario}: ${failures.length === 0 ? `${succeeded} checks succeeded, and that is none` : failures.map(({ id, errorMessage }) => `${id}: ${errorMessage}`).join('; ')}`,
    );
  for (const scenario of stale) say(`  ${scenario} passes, and stands in the baseline: take it out`);
}

const wanted = (suites) => suites.filter(({ name }) => values.only === undefined || values.only === name);

async function serverLeg(stack) {
  if (stack.edgeUrl === undefined) throw new Error('the stack has no edge; build it first');
  const behinds = await Behind.all(stack);
  const results = [];
  // The stateless revision last: it leaves calls behind that nobody comes back to, and while they wait nobody knows whose a server's logs are.
  for (const suite of wanted(SUITES))
    for (const { name, url } of behinds)
      results.push(await attempt(suite, { leg: 'server', name: `the edge in front of ${name}`, args: ['server', '--url', url] }));
  if (values.only === undefined || values.only === 'inspector') for (const behind of behinds) results.push(...(await inspect(behind, say)));
  for (const behind of behinds) await behind.stop();
  return results;
}

async function clientLeg(stack) {
  const driver = await Driver.open(stack);
  const results = [];
  try {
    const args = ['client', '--command', `${process.execPath} ${CLIENT}`, '--timeout', String(CLIENT_MS)];
    for (const suite of wanted(CLIENT_SUITES))
      results.push(await attempt(suite, { leg: 'client', name: 'the broker', args, env: { AMBIT_CONFORMANCE_DRIVER: driver.url } }));
  } finally {
    await driver.stop();
  }
  return results;
}

// Nobody else is there to answer what a client cannot: the suite waits for that less long than people would.
process.env.AMBIT_EDGE_WAIT_MS ??= '1000';
const stack = await openStack(say, 'conformance');
const results = [];
try {
  if (values.leg !== 'server') results.push(...(await clientLeg(stack)));
  if (values.leg !== 'client') results.push(...(await serverLeg(stack)));
} finally {
  await stack.stop();
}
if (values.json) process.stdout.write(`${JSON.stringify(results, null, 2)}\n`);
process.exitCode = results.length > 0 && results.every(({ ok }) => ok) ? 0 : 1;
