// `npm run conformance`: the public conformance suite of MCP against the edge, in front of one server and of three whose names collide.
// A scenario counts only with at least one check that succeeded: one that was skipped proves nothing.
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { openStack } from '../../bench/stack.mjs';
import { Behind } from './behind.mjs';
import { SUITES } from './suites.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const { values } = parseArgs({
  options: { json: { type: 'boolean', default: false }, only: { type: 'string' }, scenario: { type: 'string' }, keep: { type: 'string' } },
});
const say = (line) => process.stderr.write(`${line}\n`);
const run = promisify(execFile);
const SUITE_MS = 600_000;

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
  for (const entry of readdirSync(folder)) {
    const file = join(folder, entry, 'checks.json');
    if (!existsSync(file)) continue;
    const scenario = entry.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/, '');
    found.set(scenario, JSON.parse(readFileSync(file, 'utf8')));
  }
  return found;
}

async function attempt({ name, version, args, baseline }, behind) {
  const program = await programOf(version);
  const out = mkdtempSync(join(tmpdir(), 'ambit-conformance-'));
  const only = values.scenario === undefined ? args : ['--scenario', values.scenario];
  const { output, code } = await run(process.execPath, [program, 'server', '--url', behind.url, ...only, '-o', out], {
    timeout: SUITE_MS,
    maxBuffer: 64 * 1024 * 1024,
  })
    .then(({ stdout, stderr }) => ({ output: stdout + stderr, code: 0 }))
    .catch((error) => ({ output: `${error.stdout ?? ''}${error.stderr ?? ''}`, code: error.code ?? 1 }));
  const scenarios = [...checksIn(out)].map(([scenario, checks]) => {
    const of = (status) => checks.filter((check) => check.status === status);
    const failures = of('FAILURE').map(({ id, errorMessage }) => ({ id, errorMessage }));
    return { scenario, passed: of('SUCCESS').length, failed: failures.length, failures };
  });
  if (values.keep !== undefined) writeFileSync(join(values.keep, `${name}-${behind.name}.log`), output);
  rmSync(out, { recursive: true, force: true });
  const isExpected = ({ scenario }) => Object.hasOwn(baseline, scenario);
  const bad = scenarios.filter((one) => (one.failed > 0 || one.passed === 0) && !isExpected(one));
  const stale = Object.keys(baseline).filter((scenario) =>
    scenarios.some((one) => one.scenario === scenario && one.failed === 0 && one.passed > 0),
  );
  return {
    suite: name,
    behind: behind.name,
    passed: scenarios.reduce((sum, one) => sum + one.passed, 0),
    failed: scenarios.reduce((sum, one) => sum + one.failed, 0),
    scenarios: scenarios.length,
    baseline,
    bad,
    stale,
    exit: code,
    ok: scenarios.length > 0 && bad.length === 0 && stale.length === 0,
  };
}

// Nobody else is there to answer what a client cannot: the suite waits for that less long than people would.
process.env.AMBIT_EDGE_WAIT_MS ??= '1000';
const stack = await openStack(say, 'conformance');
const results = [];
try {
  if (stack.edgeUrl === undefined) throw new Error('the stack has no edge; build it first');
  const behinds = await Behind.all(stack);
  // The stateless revision last: it leaves calls behind that nobody comes back to, and while they wait nobody knows whose a server's logs are.
  for (const suite of SUITES.filter(({ name }) => values.only === undefined || values.only === name)) {
    for (const behind of behinds) {
      const result = await attempt(suite, behind);
      results.push(result);
      say(
        `${result.suite} in front of ${result.behind}: ${result.passed} checks passed, ${result.failed} failed in ${result.scenarios} scenarios`,
      );
      for (const { scenario, passed, failures } of result.bad)
        say(
          `  ${scenario}: ${failures.length === 0 ? `${passed} checks succeeded, and that is none` : failures.map(({ id, errorMessage }) => `${id}: ${errorMessage}`).join('; ')}`,
        );
      for (const scenario of result.stale) say(`  ${scenario} passes, and stands in the baseline: take it out`);
    }
  }
  for (const behind of behinds) await behind.stop();
} finally {
  await stack.stop();
}
if (values.json) process.stdout.write(`${JSON.stringify(results, null, 2)}\n`);
process.exitCode = results.length > 0 && results.every(({ ok }) => ok) ? 0 : 1;
