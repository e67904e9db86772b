// npm run check: everything that can be said of the tree without running the product. One line a step, a summary at the end.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const { scripts } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

/** A step that fails shows this much of what it printed. */
const MOST_LINES = 80;

/** In this order: what is quick and tells most comes first, except that a lint is worth nothing before its canary. */
const steps = [
  ['generate', ['npm', 'run', '-s', 'generate'], 'the database client, which types and lint read'],
  ['boundaries', ['node', 'tools/check-boundaries.mjs'], 'the boundary rules bite'],
  ['lint', ['npm', 'run', '-s', 'lint'], 'rules of eslint.config.mjs'],
  ['typecheck', ['npm', 'run', '-s', 'typecheck'], 'types of the whole tree'],
  ['format', ['npx', '--no-install', 'prettier', '--check', '--log-level', 'warn', '.'], 'formatting; `npm run format` puts it right'],
  ['hygiene', ['node', 'tools/hygiene.mjs'], 'hosts, paths, leftovers, licences, long files'],
  ['ownership', ['node', 'tools/ownership.mjs'], 'every app writes and says what is its own'],
  ['knip', ['npx', '--no-install', 'knip', '--no-config-hints'], 'unused files, exports and packages'],
  ['gen', ['node', 'tools/gen.mjs', '--check'], 'generated files are as their sources say'],
  ['requirements', ['npm', 'run', '-s', 'requirements', '--', '--check'], 'tests cite clauses that exist'],
  ['faults', ['npm', 'run', '-s', 'faults', '--', '--check'], 'declared faults against those that tests received'],
].filter(([, command]) => command[0] !== 'npm' || command[3] in scripts);

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !steps.some(([step]) => step === name));
if (unknown.length > 0) {
  console.error(`check: no step "${unknown[0]}"; there are ${steps.map(([name]) => name).join(', ')}`);
  process.exit(2);
}

/** Runs one step; resolves to its exit code and all it printed. */
function run([command, ...args]) {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NX_TUI: 'false', NO_COLOR: '1', FORCE_COLOR: '0' },
    });
    const printed = [];
    child.stdout.on('data', (data) => printed.push(data));
    child.stderr.on('data', (data) => printed.push(data));
    child.on('error', (error) => resolve({ code: 1, text: error.message }));
    child.on('close', (code) => resolve({ code: code ?? 1, text: Buffer.concat(printed).toString('utf8') }));
  });
}

const failed = [];
const began = performance.now();
for (const [name, command, what] of steps) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  process.stdout.write(`${name.padEnd(13)} … `);
  const start = performance.now();
  const { code, text } = await run(command);
  const seconds = ((performance.now() - start) / 1_000).toFixed(1);
  const said = text.trimEnd().split('\n');
  if (code === 0) {
    // Our own tools end in one sentence that says what was looked at.
    console.log(`ok      ${seconds.padStart(5)} s  ${said.length === 1 && said[0] !== '' ? said[0] : what}`);
    continue;
  }
  console.log(`FAILED  ${seconds.padStart(5)} s  ${what}`);
  failed.push(name);
  for (const line of said.slice(0, MOST_LINES)) console.log(`  │ ${line}`);
  if (said.length > MOST_LINES) console.log(`  │ … and ${said.length - MOST_LINES} lines more: ${command.join(' ')}`);
  console.log();
}

const total = ((performance.now() - began) / 1_000).toFixed(0);
if (failed.length > 0) {
  console.log(`\ncheck failed after ${total} s: ${failed.join(', ')}. Run one again with: npm run check -- ${failed[0]}`);
  process.exit(1);
}
console.log(`\ncheck passed in ${total} s`);
