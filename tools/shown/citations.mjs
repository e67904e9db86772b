// Finds `verifies('R-…#n', …)` and `verifies(['R-…#n', …], …)` in the tests by reading them, without running any.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const CALL = /\bverifies\(\s*(\[[^\]]*\]|'[^']*')/g;
const CLAUSE = /'(R-[A-Z]+-[0-9]+#[0-9]+)'/g;

/** Every citation as `{ clause, file, line }`. */
export function findCitations(root) {
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--', '*.test.ts'], {
    cwd: root,
    encoding: 'utf8',
  });
  const citations = [];
  for (const file of listed.split('\0').filter((name) => name !== '' && existsSync(join(root, name)))) {
    const text = readFileSync(join(root, file), 'utf8');
    for (const call of text.matchAll(CALL)) {
      const line = text.slice(0, call.index).split('\n').length;
      for (const [, clause] of call[1].matchAll(CLAUSE)) citations.push({ clause, file, line });
    }
  }
  return citations;
}
