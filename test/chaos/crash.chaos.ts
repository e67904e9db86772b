import { expect, it, jest } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { figuresOf } from './figures.js';
import { readOptions } from './options.js';
import { runChaos } from './run.js';
import { checksOf } from './verdict.js';

const options = readOptions();
const MARGIN_S = 600;
const SHORT_MS = 90_000;
jest.setTimeout((options.seconds + MARGIN_S) * 1_000);

it('processes are killed under load, and the books are right', async () => {
  const { books, figures } = await runChaos(options, (line) => process.stderr.write(`chaos  ${line}\n`));
  const checks = checksOf(books, { leastEach: 2, leastMs: Math.min(SHORT_MS, options.seconds * 1_000) });
  writeFileSync(options.resultFile, JSON.stringify({ figures: { ...figuresOf(books), ...figures }, checks, kills: books.kills }));
  expect(checks.filter(({ held }) => !held)).toEqual([]);
});
