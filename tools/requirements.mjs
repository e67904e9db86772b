// npm run requirements: which requirements the tests have shown, from what they really ran.
//   --json   one JSON document {total, verified, missing}
//   --check  fails for a citation of a clause that does not exist; runs no test
import { fileURLToPath } from 'node:url';
import './typescript.mjs';
import { findCitations } from './shown/citations.mjs';
import { readRecords } from './shown/records.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const { areas, clausesOf, requirements } = await import('../test/requirements.ts');

const known = new Set(Object.keys(requirements).flatMap((id) => clausesOf(id)));
const citations = findCitations(root);
const unknown = citations.filter(({ clause }) => !known.has(clause));
for (const { clause, file, line } of unknown) console.error(`${file}:${line} cites ${clause}, which is not in test/requirements`);

if (process.argv.includes('--check')) {
  if (unknown.length > 0) process.exit(1);
  console.log(`${citations.length} citations of ${new Set(citations.map(({ clause }) => clause)).size} clauses, all of them known`);
  process.exit(0);
}

/** A clause is shown when a citing test passed with an answered request, and none that cites it failed. */
const { files } = readRecords(root);
const tests = files.flatMap(({ file, entries }) => entries.filter(({ kind }) => kind === 'test').map((entry) => ({ file, ...entry })));
const shown = new Set(tests.filter(({ passed, served }) => passed && served > 0).flatMap(({ clauses }) => clauses));
for (const { clauses } of tests.filter(({ passed }) => !passed)) for (const clause of clauses) shown.delete(clause);

const ids = Object.keys(requirements);
const isVerified = (id) => clausesOf(id).every((clause) => shown.has(clause));
const verified = ids.filter(isVerified);
const missing = ids.filter((id) => !isVerified(id));

if (process.argv.includes('--json')) {
  process.stdout.write(`${JSON.stringify({ total: ids.length, verified, missing })}\n`);
  process.exit(0);
}

console.log('area       requirements     clauses');
for (const [area, table] of Object.entries(areas)) {
  const inArea = Object.keys(table);
  const clauses = inArea.flatMap((id) => clausesOf(id));
  const line = [
    inArea.filter(isVerified).length,
    'of',
    inArea.length,
    clauses.filter((clause) => shown.has(clause)).length,
    'of',
    clauses.length,
  ];
  console.log(`${area.padEnd(10)}${line.map((part) => String(part).padStart(5)).join('')}`);
}
console.log(
  `\n${verified.length} of ${ids.length} requirements and ${[...known].filter((clause) => shown.has(clause)).length} of ${known.size} clauses are shown\n`,
);

const failed = tests.filter(({ passed }) => !passed);
for (const { file, test } of failed) console.log(`failed: ${test} (${file})`);
const silent = tests.filter(({ passed, served }) => passed && served === 0);
for (const { file, test } of silent) console.log(`does not count, no service answered it: ${test} (${file})`);

const cited = new Set(citations.map(({ clause }) => clause));
for (const id of missing) {
  const lacking = clausesOf(id).filter((clause) => !shown.has(clause));
  console.log(`${id} ${requirements[id].title}`);
  for (const clause of lacking) {
    const number = Number(clause.split('#')[1]);
    console.log(`  #${number} ${requirements[id].clauses[number]}${cited.has(clause) ? ' (cited)' : ''}`);
  }
}
