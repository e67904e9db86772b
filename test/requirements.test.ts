import { expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { areas, clausesOf, requirements, type RequirementId } from './requirements.js';
import type { Requirement } from './requirements/requirement.js';

const ids = Object.keys(requirements) as RequirementId[];
const tables: [string, Record<string, Requirement>][] = Object.entries(areas);

it('names every requirement once', () => {
  const counted = tables.flatMap(([, table]) => Object.keys(table));
  expect(counted).toHaveLength(new Set(counted).size);
  expect([...counted].sort()).toEqual([...ids].sort());
});

it.each(tables)('numbers the requirements of %s from 1 without gaps', (_area, table) => {
  expect(Object.keys(table).map((id) => Number(id.split('-')[2]))).toEqual(Object.keys(table).map((_id, index) => index + 1));
  expect(new Set(Object.keys(table).map((id) => id.split('-')[1])).size).toBe(1);
});

it('gives every requirement a title, a sentence and numbered clauses with text', () => {
  for (const id of ids) {
    const { title, behavior, clauses }: Requirement = requirements[id];
    expect({ id, title: title.trim().length > 0, behavior: /^\S.*\.$/.test(behavior) }).toEqual({ id, title: true, behavior: true });
    expect({ id, numbers: Object.keys(clauses).map(Number) }).toEqual({
      id,
      numbers: Object.keys(clauses).map((_number, index) => index + 1),
    });
    expect({ id, blank: Object.values(clauses).filter((text) => text.trim().length < 10) }).toEqual({ id, blank: [] });
  }
});

it('says nothing twice', () => {
  const titles = ids.map((id) => `${id.split('-')[1]} ${requirements[id].title}`);
  expect(titles.filter((title, index) => titles.indexOf(title) !== index)).toEqual([]);
  for (const id of ids) {
    const texts: string[] = Object.values(requirements[id].clauses);
    expect({ id, doubled: texts.filter((text, index) => texts.indexOf(text) !== index) }).toEqual({ id, doubled: [] });
  }
});

it('is cited only by clauses that exist, and only once within a citation', () => {
  const root = fileURLToPath(new URL('..', import.meta.url));
  const checked = execFileSync('npm', ['run', '-s', 'requirements', '--', '--check'], { cwd: root, encoding: 'utf8' });
  expect(checked).toMatch(/all of them known/);
  expect(clausesOf('R-TOOL-9')).toHaveLength(5);
});
