import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** What a test file leaves behind for `npm run requirements`, `faults` and `canary`, one JSON line each. */
export type ShownRecord =
  | { readonly kind: 'file'; readonly file: string }
  | { readonly kind: 'test'; readonly clauses: readonly string[]; readonly test: string; readonly passed: boolean; readonly served: number }
  | { readonly kind: 'fault'; readonly subject: string; readonly code: string; readonly where: 'reply' | 'result' | 'run' | 'http' }
  | { readonly kind: 'leak'; readonly where: string; readonly secret: string };

const root = fileURLToPath(new URL('../../..', import.meta.url));
/** One file of lines for each test file; a run of that test file replaces it. */
const shown = join(root, 'coverage', 'shown');

let target: string | undefined;
let testFile: string | undefined;
const written = new Set<string>();

function currentTestFile(): string | undefined {
  const jest: { getState?: () => { testPath?: string } } | undefined = (
    globalThis as { expect?: { getState?: () => { testPath?: string } } }
  ).expect;
  return jest?.getState?.().testPath;
}

/** Starts the record of the running test file, once, in `coverage/shown` where no other folder is given; outside Jest nothing is recorded. */
export function openRecords(folder: string = shown): void {
  if (target !== undefined) return;
  testFile = currentTestFile();
  if (testFile === undefined) return;
  const path = testFile.startsWith(root) ? testFile.slice(root.length) : testFile;
  target = join(folder, `${createHash('sha256').update(path).digest('hex').slice(0, 16)}.jsonl`);
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, `${JSON.stringify({ kind: 'file', file: path } satisfies ShownRecord)}\n`);
}

/** Adds one line, unless the same stands there. */
export function record(entry: ShownRecord): void {
  if (target === undefined || !existsSync(dirname(target))) return;
  const line = JSON.stringify(entry);
  if (written.has(line)) return;
  written.add(line);
  appendFileSync(target, `${line}\n`);
}
