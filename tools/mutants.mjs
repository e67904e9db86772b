// npm run mutants [name …]: switches off one protection at a time, in a copy of the tree, and runs the tests that cite what it keeps.
// Fails when a protection can go without a citing test going red. tools/mutants/list.mjs says how to add one.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { copyTree } from './mutants/copy.mjs';
import { gateClauses, gateMutant, otherMutants } from './mutants/list.mjs';
import { findCitations } from './shown/citations.mjs';
import { readRecords } from './shown/records.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const quiet = { cwd: root, stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, NX_TUI: 'false' } };
execFileSync('npx', ['--no-install', 'nx', 'run-many', '-t', 'build', '--output-style=static'], quiet);
const { GATES } = await import('@ambit/capability');

const gates = GATES.map(({ name }) => name);
const unlisted = gates.filter((name) => !Object.hasOwn(gateClauses, name));
const gone = Object.keys(gateClauses).filter((name) => !gates.includes(name));
for (const name of unlisted) console.error(`the gate ${name} does not stand in tools/mutants/list.mjs`);
for (const name of gone) console.error(`tools/mutants/list.mjs names ${name}, which is no gate`);

const all = [...gates.filter((name) => Object.hasOwn(gateClauses, name)).map(gateMutant), ...otherMutants];
const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !all.some((mutant) => mutant.name === name));
if (unknown.length > 0) {
  console.error(`no mutant "${unknown[0]}"; there are ${all.map(({ name }) => name).join(', ')}`);
  process.exit(2);
}
const mutants = wanted.length === 0 ? all : all.filter(({ name }) => wanted.includes(name));
const citations = findCitations(root);
const { copy, remove } = copyTree(root);
process.on('exit', remove);
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

/** What the last run of tests printed, for a run that showed nothing. */
let lastOutput = '';

/** Runs the tests that cite any of the clauses; returns their records, by clause. */
function runCiting(clauses) {
  const files = [...new Set(citations.filter(({ clause }) => clauses.includes(clause)).map(({ file }) => file))];
  if (files.length === 0) return [];
  const names = clauses.map((clause) => `${clause}(?![0-9])`).join('|');
  const { stdout, stderr } = spawnSync('npx', ['--no-install', 'jest', '--runTestsByPath', ...files, '-t', names, '--silent'], {
    cwd: copy,
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    env: { ...process.env, NODE_OPTIONS: '--experimental-vm-modules --disable-warning=ExperimentalWarning', NX_TUI: 'false' },
    timeout: 10 * 60_000,
  });
  lastOutput = `${stdout}${stderr}`;
  return readRecords(copy)
    .files.filter(({ file }) => files.includes(file))
    .flatMap(({ entries }) => entries)
    .filter((entry) => entry.kind === 'test' && entry.clauses.some((clause) => clauses.includes(clause)));
}

/** The built package is what a service runs; the source is what a test of the package runs. */
function rebuild(file) {
  const workspace = join(copy, ...file.split('/').slice(0, 2));
  if (!existsSync(join(workspace, 'dist'))) return;
  execFileSync('npm', ['run', '-s', 'build'], { cwd: workspace, stdio: 'pipe' });
}

/** What the tests say of the tree as it is; several mutants share it. */
const unchanged = new Map();
function runUnchanged(clauses) {
  const key = clauses.join();
  if (!unchanged.has(key)) unchanged.set(key, runCiting(clauses));
  return unchanged.get(key);
}

const failures = [];
const say = (name, text) => console.log(`${name.padEnd(18)} ${text}`);
for (const { name, file, find, replace, clauses } of mutants) {
  const path = join(copy, file);
  const source = readFileSync(path, 'utf8');
  if (source.split(find).length !== 2) {
    failures.push(name);
    say(name, `FAILED  ${file} must hold "${find}" once`);
    continue;
  }
  const before = runUnchanged(clauses);
  if (before.length === 0) {
    failures.push(name);
    const isCited = citations.some(({ clause }) => clauses.includes(clause));
    say(
      name,
      isCited
        ? `FAILED  the tests that cite ${clauses.join(', ')} did not run\n${lastOutput.split('\n').slice(0, 20).join('\n')}`
        : `FAILED  no test cites ${clauses.join(', ')}`,
    );
    continue;
  }
  const red = before.find(({ passed }) => !passed);
  if (red !== undefined) {
    failures.push(name);
    say(name, `FAILED  red without any change: ${red.test}`);
    continue;
  }
  writeFileSync(
    path,
    source.replace(find, () => replace),
  );
  rebuild(file);
  const after = runCiting(clauses);
  writeFileSync(path, source);
  rebuild(file);
  const killers = after.filter(({ passed }) => !passed);
  if (killers.length > 0) say(name, `ok      ${killers[0].test}`);
  else {
    failures.push(name);
    say(
      name,
      after.length === 0 ? 'FAILED  its tests did not run at all with it switched off' : 'FAILED  every citing test stays green without it',
    );
  }
}

if (failures.length + unlisted.length + gone.length > 0) {
  console.error(`\nnot held by a test: ${[...failures, ...unlisted, ...gone].join(', ')}`);
  process.exit(1);
}
console.log(`\n${mutants.length} protections, each held by a test`);
