import { expect, it } from '@jest/globals';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

// A page that names a file which is gone sends its reader astray; here every path in the guides is looked up.
const root = fileURLToPath(new URL('..', import.meta.url));
const guides = [
  ...['README.md', 'AGENTS.md', 'CONTRIBUTING.md', 'REVIEW.md', 'CHANGELOG.md', 'docs/decisions/README.md'],
  ...readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

/** Paths in back-ticks that begin at a top folder; `<name>` and `…` make a pattern of one, which names no file. */
function pathsIn(text: string): readonly string[] {
  const quoted = [...text.matchAll(/`([^`\n]+)`/g)].map(([, inner = '']) => inner);
  return quoted.filter((inner) => /^(apps|libs|test|tools|docs|prisma|deploy|examples|bench)\/[^\s<>…{}]*$/.test(inner));
}

/** Targets of Markdown links that stay in the tree, without their anchors. */
function linksIn(text: string): readonly string[] {
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target.replace(/#.*$/, ''))
    .filter((target) => target !== '' && !/^[a-z]+:/.test(target));
}

/** Whether something is there; `*` stands for any one name. */
function exists(path: string, base = root): boolean {
  const [first = '', ...rest] = path.replace(/\/$/, '').split('/');
  if (first === '') return true;
  const isLast = rest.length === 0;
  if (!first.includes('*')) return existsSync(join(base, first)) && (isLast || exists(rest.join('/'), join(base, first)));
  const pattern = new RegExp(`^${first.replace(/[.+?^$()|[\]\\]/g, '\\$&').replaceAll('*', '.*')}$`);
  return readdirSync(base).some((name) => pattern.test(name) && (isLast || exists(rest.join('/'), join(base, name))));
}

it.each(guides)('%s names only what exists', (guide) => {
  const text = readFileSync(join(root, guide), 'utf8');
  const missingPaths = pathsIn(text).filter((path) => !exists(path));
  const missingLinks = linksIn(text).filter((target) => !existsSync(resolve(root, dirname(guide), target)));
  expect([...missingPaths, ...missingLinks]).toEqual([]);
});

it('AGENTS.md fits on a page', () => {
  expect(readFileSync(join(root, 'AGENTS.md'), 'utf8').split('\n').length).toBeLessThanOrEqual(121);
});
