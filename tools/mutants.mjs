// npm run mutants [name …] [-- --json]: switches off one protection at a time, in a copy of the tree, and runs the tests that cite what it keeps.
// Fails when a protection can go without a citing test going red. tools/mutants/list.mjs says how to add one.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from './build.mjs';
import { copyTree } from './mutants/copy.mjs';
import { gateClauses, gateMutant, otherMutants } from './mutants/list.mjs';
import { findCitations } from './shown/citations.mjs';
import { readRecords } from './shown/records.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
await build(() => undefined);
const { GATES } = await import('@ambit/capability');

const gates = GATES.map(({ name }) => name);
const unlisted = gates.filter((name) => !Object.hasOwn(gateClauses, name));
const gone = Object.keys(gateClauses).filter((name) => !gates.includes(name));
for (const name of unlisted) console.error(`the gate ${name} does not stand in tools/mutants/list.mjs`);
for (const name of gone) console.error(`tools/mutants/list.mjs names ${name}, which is no gate`);

const all = [...gates.filter((name) => Object.hasOwn(gateClauses, name)).map(gateMutant), ...otherMutants];
const isJson = process.argv.includes('--json');
const wanted = process.argv.slice(2).filter((argument) => argument !== '--json');
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

/** Where a mutated file reads what it leaves out for the test that runs. */
const leftOut = join(copy, 'coverage', 'left-out');
mkdirSync(join(copy, 'coverage'), { recursive: true });
writeFileSync(leftOut, '');

/** What the last run of tests printed, for a run that showed nothing. */
let lastOutput = '';

/** Whether a test is one that must notice: it cites a clause at stake, and has the name that the mutant asks for, if it does. */
const mustNotice = ({ clauses, only }, entry) =>
  entry.kind === 'test' && entry.clauses.some((clause) => clauses.includes(clause)) && (only === undefined || entry.test.includes(only));

/** The files with tests that may notice one of the mutants. */
const filesFor = (several) => [
  ...new Set(
    several.flatMap(({ clauses, only }) =>
      citations
        .filter(
          ({ clause, file }) => clauses.includes(clause) && (only === undefined || readFileSync(join(root, file), 'utf8').includes(only)),
        )
        .map(({ file }) => file),
    ),
  ),
];

/** The files with the test that must notice nothing. */
const filesOf = (control) =>
  control === undefined
    ? []
    : [...new Set(citations.map(({ file }) => file))].filter((file) => readFileSync(join(root, file), 'utf8').includes(control));

/** Runs the tests that must notice any of the mutants, and the one that must not, each file once; returns what they recorded. */
function runFor(several, setup) {
  const [{ control }] = several;
  const files = [...new Set([...filesFor(several), ...filesOf(control)])];
  if (files.length === 0) return [];
  // What an earlier run recorded must not stand in for one that shows nothing.
  rmSync(join(copy, 'coverage', 'shown'), { recursive: true, force: true });
  const names = [...several.map(({ clauses, only }) => only ?? clauses.map((clause) => `${clause}(?![0-9])`).join('|')), control]
    .filter((name) => name !== undefined)
    .join('|');
  const { stdout, stderr } = spawnSync(
    'npx',
    [
      ...['--no-install', 'jest', '--runInBand', '--runTestsByPath', ...files, '-t', names, '--silent'],
      ...(setup === undefined ? [] : ['--setupFilesAfterEnv', `<rootDir>/${setup}`]),
    ],
    {
      cwd: copy,
      stdio: ['ignore', 'pipe', 'pipe'],
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
      env: {
        ...process.env,
        NODE_OPTIONS: '--experimental-vm-modules --disable-warning=ExperimentalWarning',
        NX_TUI: 'false',
        AMBIT_LEFT_OUT: leftOut,
      },
      timeout: 20 * 60_000,
    },
  );
  lastOutput = `${stdout}${stderr}`;
  return readRecords(copy)
    .files.filter(({ file }) => files.includes(file))
    .flatMap(({ entries }) => entries);
}

/** The built package is what a service runs; the source is what a test of the package runs. */
function rebuild(file) {
  const workspace = join(copy, ...file.split('/').slice(0, 2));
  if (!existsSync(join(workspace, 'dist'))) return;
  execFileSync('npm', ['run', '-s', 'build'], { cwd: workspace, stdio: 'pipe' });
}

const failures = [];
const verdicts = [];
function say({ name }, held, text) {
  verdicts.push({ name, held, says: text });
  if (!held) failures.push(name);
  if (!isJson) console.log(`${name.padEnd(18)} ${held ? 'ok    ' : 'FAILED'}  ${text}`);
}
const head = () => lastOutput.split('\n').slice(0, 20).join('\n');

/** Whether the tests that must notice ran, and green, with the tree as it is; says so where not. */
function isHeldUnchanged(mutant, entries) {
  const before = entries.filter((entry) => mustNotice(mutant, entry));
  const red = before.find(({ passed }) => !passed);
  const cited = mutant.clauses.join(', ');
  if (red !== undefined) say(mutant, false, `red without any change: ${red.test}`);
  else if (filesFor([mutant]).length === 0)
    say(mutant, false, `no test${mutant.only === undefined ? '' : ` "${mutant.only} …"`} cites ${cited}`);
  else if (before.length === 0) say(mutant, false, `the tests that cite ${cited} did not run\n${head()}`);
  return red === undefined && before.length > 0;
}

/** Runs with the file changed, and says for each mutant whether a test noticed. */
function tryChanged(several, { file, find, replace, setup, control }) {
  const path = join(copy, file);
  const source = readFileSync(path, 'utf8');
  writeFileSync(
    path,
    source.replace(find, () => replace),
  );
  rebuild(file);
  const after = runFor(several, setup);
  // A system that did not start in time, on a busy machine, shows nothing either way.
  const silent = several.filter((mutant) => !after.some((entry) => mustNotice(mutant, entry)));
  if (silent.length > 0) after.push(...runFor(silent, setup));
  writeFileSync(path, source);
  rebuild(file);
  const isBroken = control !== undefined && !after.some((entry) => entry.kind === 'test' && entry.test.includes(control) && entry.passed);
  for (const mutant of several) {
    if (isBroken) {
      say(mutant, false, `the test "${control} …" must stay green with the change, and does not`);
      continue;
    }
    const entries = after.filter((entry) => mustNotice(mutant, entry));
    const killer = entries.find(({ passed }) => !passed);
    if (killer !== undefined) say(mutant, true, killer.test);
    else if (entries.length > 0) say(mutant, false, 'every citing test stays green without it');
    else say(mutant, false, `its tests did not run at all with it switched off\n${head()}`);
  }
}

/** Mutants that are one change of a file are tried in one run. */
const groups = Map.groupBy(mutants, ({ file, find, replace }) => JSON.stringify([file, find, replace]));
const unchanged = new Map();
for (const group of groups.values()) {
  const [change] = group;
  if (readFileSync(join(copy, change.file), 'utf8').split(change.find).length !== 2) {
    for (const mutant of group) say(mutant, false, `${change.file} must hold "${change.find}" once`);
    continue;
  }
  const key = JSON.stringify(group.map(({ clauses, only }) => [clauses, only]));
  if (!unchanged.has(key)) unchanged.set(key, runFor(group));
  const held = group.filter((mutant) => isHeldUnchanged(mutant, unchanged.get(key)));
  if (held.length > 0) tryChanged(held, change);
}

if (isJson) console.log(JSON.stringify({ protections: verdicts, notHeld: [...failures, ...unlisted, ...gone] }));
if (failures.length + unlisted.length + gone.length > 0) {
  console.error(`\nnot held by a test: ${[...failures, ...unlisted, ...gone].join(', ')}`);
  process.exit(1);
}
if (!isJson) console.log(`\n${mutants.length} protections, each held by a test`);
