// The index of docs/decisions, between its markers. A record is NNNN-slug.md with a title, a date and a status.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { table } from './markdown.mjs';

const BEGIN = '<!-- index: made by `npm run gen` -->';
const END = '<!-- end of index -->';

/** Throws when a record has no title, date or status, is longer than a page, or has a number twice. */
export function decisionIndex(root) {
  const directory = join(root, 'docs/decisions');
  const seen = new Set();
  const rows = readdirSync(directory)
    .filter((file) => /^\d{4}-[a-z0-9-]+\.md$/.test(file))
    .sort()
    .map((file) => {
      const text = readFileSync(join(directory, file), 'utf8');
      const number = file.slice(0, 4);
      const title = /^# (.+)$/m.exec(text)?.[1];
      const [, date, status] = /^Date: (\d{4}-\d{2}-\d{2})\. Status: ([^\n]+)\.$/m.exec(text) ?? [];
      if (title === undefined || date === undefined)
        throw new Error(`docs/decisions/${file} needs "# Title" and "Date: YYYY-MM-DD. Status: accepted."`);
      if (seen.has(number)) throw new Error(`two decision records have the number ${number}`);
      if (text.split('\n').length > 60) throw new Error(`docs/decisions/${file} is longer than a page (60 lines)`);
      seen.add(number);
      return [number, `[${title}](${file})`, date, status];
    });
  const page = readFileSync(join(directory, 'README.md'), 'utf8');
  const [before, rest] = page.split(BEGIN);
  const after = rest?.split(END)[1];
  if (after === undefined) throw new Error(`docs/decisions/README.md needs the lines "${BEGIN}" and "${END}"`);
  return `${before}${BEGIN}\n\n${table(['No.', 'Decision', 'Date', 'Status'], rows)}\n${END}${after}`;
}
