// What the tests of the last runs left in coverage/shown: one file of JSON lines for each test file.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Reads the records of test files that still exist, `{ file, entries }` each, and whether the last full run ended. */
export function readRecords(root) {
  const folder = join(root, 'coverage', 'shown');
  const files = [];
  if (!existsSync(folder)) return { files, fullRun: undefined };
  for (const name of readdirSync(folder).sort()) {
    if (!name.endsWith('.jsonl')) continue;
    const [head, ...entries] = readFileSync(join(folder, name), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
    if (head?.kind === 'file' && existsSync(join(root, head.file))) files.push({ file: head.file, entries });
  }
  const marker = join(folder, 'full-run.json');
  return { files, fullRun: existsSync(marker) ? JSON.parse(readFileSync(marker, 'utf8')) : undefined };
}
