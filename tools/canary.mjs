// npm run canary [folder or file …]: fails when a secret that a test planted came back in a reply, or stands in a log given here.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import './typescript.mjs';
import { readRecords } from './shown/records.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const { canariesIn } = await import('../libs/testing/src/canary.ts');
const MAX_FILE = 256 * 1024 * 1024;

const leaks = [];
const { files } = readRecords(root);
for (const { file, entries } of files)
  for (const { where, secret } of entries.filter(({ kind }) => kind === 'leak')) leaks.push(`${file}: ${secret} in an answer of ${where}`);

let searched = 0;
function search(path) {
  const info = statSync(path);
  if (info.isDirectory()) {
    for (const name of readdirSync(path)) search(join(path, name));
  } else if (info.isFile() && info.size <= MAX_FILE) {
    searched += 1;
    for (const secret of canariesIn(readFileSync(path, 'latin1'))) leaks.push(`${path}: ${secret}`);
  }
}
const given = process.argv.slice(2);
for (const path of [...given, join(root, 'coverage', 'logs')]) if (existsSync(path)) search(path);

for (const leak of leaks) console.error(leak);
if (leaks.length > 0) {
  console.error(`\n${leaks.length} leaks of planted secrets`);
  process.exit(1);
}
console.log(`no planted secret in the answers of ${files.length} test files and in ${searched} files of logs`);
