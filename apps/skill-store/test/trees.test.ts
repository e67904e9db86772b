import { createHash } from 'node:crypto';
import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, rename, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { skillStore, type FileEntry } from '@ambit/contracts';
import { until } from '@ambit/testing';
import { afterAll, beforeAll, expect, jest } from '@jest/globals';
import fc from 'fast-check';
import { verifies } from '../../../test/verifies.js';
import { putBytes, startAgents, type BroughtFile } from './import-world.js';
import { SCOPES, SkillsRoot, writeAll } from './skills-root.js';
import { skillText } from './upload.js';

jest.setTimeout(60_000);
let store: SkillsRoot;
let agents: ReturnType<typeof startAgents>;
beforeAll(async () => {
  store = await SkillsRoot.start();
  agents = startAgents(store.nats.connection);
  await store.settle('default', 'first');
  await writeAll(store.outside, { 'away/secret.txt': 'Outside.', 'away/stolen/SKILL.md': skillText('stolen') });
}, 120_000);
afterAll(async () => {
  await agents?.close();
  await store?.stop();
});

interface Leaf {
  readonly path: string;
  readonly text: string;
  readonly isExecutable: boolean;
  /** Where it leads, if it is a link. */
  readonly link: string | null;
}
const FOLDERS = ['a', 'a-b', 'b', 'c', 'd', 'scripts'];
const SKIPPED = ['.install-x', 'old.backup-1', 'node_modules'];
const PLAIN = ['note.md', 'run.sh', '.DS_Store', '.hidden'];
const folder = fc.oneof(
  { weight: 12, arbitrary: fc.array(fc.constantFrom(...FOLDERS), { minLength: 1, maxLength: 2 }) },
  { weight: 2, arbitrary: fc.array(fc.constantFrom(...FOLDERS, ...SKIPPED), { maxLength: 3 }) },
  fc.array(fc.constant('d'), { minLength: 9, maxLength: 12 }),
);
const manifest = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom('one', 'two', 'three', 'four', 'five').map((name) => skillText(name)) },
  fc.constantFrom(
    '',
    'no front matter',
    '---\nname: one\n---\n',
    '---\ndescription: d\n---\n',
    skillText('one').replace('name: one', 'name: ['),
  ),
);
const leaf = (link: fc.Arbitrary<string | null>): fc.Arbitrary<Leaf> =>
  fc
    .oneof(
      {
        weight: 2,
        arbitrary: fc.record({ at: folder, name: fc.constant('SKILL.md'), text: manifest, isExecutable: fc.constant(false), link }),
      },
      fc.record({ at: folder, name: fc.constantFrom(...PLAIN), text: fc.constantFrom('', 'x', 'y'), isExecutable: fc.boolean(), link }),
    )
    .map(({ at, name, ...rest }) => ({ path: [...at, name].join('/'), ...rest }));
const trees = (link: fc.Arbitrary<string | null>): fc.Arbitrary<Leaf[][]> =>
  fc.array(fc.array(leaf(link), { minLength: 1, maxLength: 12 }), { minLength: 8, maxLength: 8 });

/** Makes the scope aside and moves it in; what does not fit with what is there already is left out. */
async function plant(agentId: string, leaves: readonly Leaf[]): Promise<void> {
  const aside = await mkdtemp(join(store.outside, 'tree-'));
  await writeAll(aside, { 'zz-done/SKILL.md': skillText('zz-done') });
  for (const { path, text, isExecutable, link } of leaves) {
    const at = join(aside, path);
    try {
      await mkdir(dirname(at), { recursive: true });
      if ((await lstat(at).catch(() => undefined)) !== undefined) continue;
      if (link === null) await writeFile(at, text);
      else await symlink(link, at);
      if (link === null && isExecutable) await chmod(at, 0o755);
    } catch (error) {
      expect(error).toMatchObject({ code: expect.stringMatching(/^(EEXIST|ENOTDIR|EISDIR)$/) });
    }
  }
  await mkdir(join(store.root, SCOPES), { recursive: true });
  await rename(aside, store.scope(agentId));
}

/** What lies physically in a scope, no link followed. */
async function filesOf(agentId: string): Promise<BroughtFile[]> {
  const scope = store.scope(agentId);
  const entries = await readdir(scope, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return Promise.all(
    paths.map(async (path) => ({
      path: path.slice(scope.length + 1),
      bytes: await readFile(path),
      executable: ((await lstat(path)).mode & 0o100) !== 0,
    })),
  );
}

const usable = async (agentId: string) =>
  (await store.list(agentId))
    .filter(({ valid }) => valid)
    .map(({ name, digest, source }) => ({ name, digest, folder: source.slice('folder:'.length) }));
const byName = (left: { readonly name: string }, right: { readonly name: string }): number => (left.name < right.name ? -1 : 1);
let rounds = 0;

/** Each content is uploaded once. */
const known = new Set<string>();
async function uploaded(files: readonly BroughtFile[]): Promise<FileEntry[]> {
  const entries: FileEntry[] = [];
  for (const { path, bytes, executable } of files) {
    const digest = sha256(bytes);
    if (!known.has(digest)) await putBytes(store.nats.bus, bytes);
    known.add(digest);
    entries.push({ path, mode: executable ? 'executable' : 'file', bytes: bytes.byteLength, digest });
  }
  return entries;
}
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

verifies(
  ['R-SKILL-3#1', 'R-SKILL-3#3', 'R-SKILL-3#4'],
  'a tree is the same catalogue in whatever order it is listed, by the folder or by an import',
  async () => {
    const seen = { usable: 0, refused: 0 };
    await fc.assert(
      fc.asyncProperty(trees(fc.constant(null)), async (all) => {
        const round = (rounds += 1);
        for (const [index, leaves] of all.entries()) {
          await plant(`t${round}-${index}`, leaves);
          // What stands where two want to be is the same: the first that was written there.
          const written = new Map([...leaves].reverse().map((one) => [one.path, one]));
          await plant(
            `u${round}-${index}`,
            [...written.values()].filter(({ path }) => ![...written.keys()].some((other) => path.startsWith(`${other}/`))),
          );
        }
        for (const index of all.keys()) {
          const [one, other] = [`t${round}-${index}`, `u${round}-${index}`];
          for (const agentId of [one, other]) await until(async () => (await store.list(agentId)).length > 0);
          const shown = await store.list(one);
          const asShown = shown.map((skill) => ({ ...skill, agentId: other, updatedAt: expect.any(String), version: expect.any(Number) }));
          expect(await store.list(other)).toEqual(asShown);
          const files = await uploaded(await filesOf(one));
          const source = { kind: 'files' as const, format: 'agents' as const, files };
          const { skills } = await store.nats.bus.call(skillStore.previewImport, { agentId: 'importer', source });
          const imported = skills.flatMap(({ name, digest, folder: at }) =>
            name === null || digest === null ? [] : [{ name, digest, folder: at }],
          );
          expect(imported.sort(byName)).toEqual(await usable(one));
          expect(skills.length).toBe(shown.length);
          seen.usable += imported.length - 1;
          seen.refused += skills.length - imported.length;
        }
      }),
      { numRuns: 2, endOnFailure: true },
    );
    // Something of each kind was there; how much is the seed's.
    expect(Math.min(seen.usable, seen.refused)).toBeGreaterThan(0);
  },
);

verifies('R-SKILL-4#1', 'whatever links a tree holds, an agent is served what lies physically in its own scope', async () => {
  const place = (path: string) => join(store.outside, path);
  const targets = fc.constantFrom(
    ...[
      place('away/secret.txt'),
      place('away'),
      place('away/stolen'),
      place('root'),
      place(`root/${SCOPES}`),
      place(`root/${SCOPES}/t1-0`),
      place('root/first'),
    ],
    ...['..', '../..', '.', 'note.md', '../../first/SKILL.md', '../t1-1', 'nowhere', 'zz-done'],
  );
  const seen = { files: 0, links: 0 };
  await fc.assert(
    fc.asyncProperty(trees(fc.oneof({ weight: 3, arbitrary: fc.constant(null) }, targets)), async (all) => {
      const round = (rounds += 1);
      for (const [index, leaves] of all.entries()) await plant(`l${round}-${index}`, leaves);
      for (const index of all.keys()) {
        const agentId = `l${round}-${index}`;
        await until(async () => (await store.list(agentId)).length > 0);
        seen.links += Object.values(await store.refused(agentId)).filter((reason) => reason.includes('link')).length;
        const own = new Map((await filesOf(agentId)).map(({ path, bytes }) => [path, sha256(bytes)]));
        for (const { name, folder: at } of await usable(agentId)) {
          const { tree } = await store.nats.bus.call(skillStore.getSkill, { agentId, name });
          seen.files += tree.length;
          for (const { path, digest } of tree) expect(own.get(at === '' ? path : `${at}/${path}`)).toBe(digest);
        }
      }
    }),
    { numRuns: 2, endOnFailure: true },
  );
  expect(seen.links).toBeGreaterThan(0);
  expect(seen.files).toBeGreaterThan(0);
});
