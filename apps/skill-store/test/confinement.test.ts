import { watch as watchFolder, type FSWatcher } from 'node:fs';
import { link, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { skillStore } from '@ambit/contracts';
import { until } from '@ambit/testing';
import { afterAll, beforeAll, expect } from '@jest/globals';
import type { Watch } from '../src/folder.watch.js';
import { verifies } from '../../../test/verifies.js';
import { SCOPES, SkillsRoot, writeAll } from './skills-root.js';
import { skillText } from './upload.js';

/** The system's watching, which this test can make go silent, or refuse. */
const watchers = new Set<FSWatcher>();
let refuses = false;
const watch: Watch = (folder, options) => {
  if (refuses) throw Object.assign(new Error('no more watchers'), { code: 'ENOSPC' });
  const watcher = watchFolder(folder, options);
  watchers.add(watcher);
  watcher.on('close', () => watchers.delete(watcher));
  return watcher;
};

let store: SkillsRoot;
beforeAll(async () => {
  store = await SkillsRoot.start({ watch, environment: { SKILLS_POLL_MS: '100', SKILLS_RESCAN_MS: '1000' } });
  await store.settle('default', 'first');
}, 120_000);
afterAll(() => store?.stop());

const SECRET = 'What lies outside.';
/** Whether the store ever took these bytes from anywhere. */
async function holds(text: string): Promise<boolean> {
  const bytes = Buffer.from(text);
  const digest = createHash('sha256').update(bytes).digest('hex');
  const files = [{ path: 'SKILL.md', bytes: bytes.byteLength, digest }];
  const refused = await store.nats.bus.call(skillStore.putSkill, { agentId: 'nobody', files }).catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: expect.stringMatching(/^(BLOB_MISSING|SKILL_INVALID)$/) });
  return (refused as { code: string }).code === 'SKILL_INVALID';
}

verifies('R-SKILL-4#1', 'a link in place of a file or a folder is refused, outward or inward', async () => {
  await writeAll(store.outside, { 'away/SKILL.md': skillText('away'), 'away/secret.txt': SECRET });
  const scope = store.scope('linked');
  await store.drop(scope, {
    'file/SKILL.md': skillText('file'),
    'folder/SKILL.md': skillText('folder'),
    'manifest/other.md': 'x',
    'inward/SKILL.md': skillText('inward'),
    'fine/SKILL.md': skillText('fine'),
  });
  await symlink(join(store.outside, 'away/secret.txt'), join(scope, 'file/secret.txt'));
  await symlink(join(store.outside, 'away'), join(scope, 'folder/references'));
  await symlink(join(store.outside, 'away/SKILL.md'), join(scope, 'manifest/SKILL.md'));
  await symlink('../fine/SKILL.md', join(scope, 'inward/again.md'));
  await symlink(join(store.outside, 'away'), join(scope, 'whole'));
  await until(async () => Object.keys(await store.refused('linked')).length === 5);
  expect(await store.effective('linked')).toEqual(['fine']);
  for (const reason of Object.values(await store.refused('linked'))) expect(reason).toContain('link');
  for (const name of ['file', 'folder', 'manifest', 'inward', 'whole', 'away'])
    for (const path of ['secret.txt', 'references/secret.txt', 'SKILL.md'])
      await expect(store.read('linked', name, path)).rejects.toMatchObject({ code: 'SKILL_NOT_FOUND' });
  expect(await holds(SECRET)).toBe(false);
});

verifies('R-SKILL-4#2', 'a file that has a second name is refused, and taken once a copy is in its place', async () => {
  const secret = `${SECRET} Under two names.`;
  await writeAll(store.outside, { 'two/secret.txt': secret });
  await store.drop(store.scope('hard'), { 'skill/SKILL.md': skillText('skill') });
  await link(join(store.outside, 'two/secret.txt'), join(store.scope('hard'), 'skill/secret.txt'));
  await until(async () => Object.keys(await store.refused('hard')).length === 1);
  expect((await store.refused('hard'))['skill']).toContain('hard link');
  expect(await store.effective('hard')).toEqual([]);
  expect(await holds(secret)).toBe(false);
  await rm(join(store.scope('hard'), 'skill/secret.txt'));
  await writeFile(join(store.scope('hard'), 'skill/secret.txt'), secret);
  await until(async () => (await store.effective('hard')).length === 1);
  expect(await holds(secret)).toBe(true);
});

verifies('R-SKILL-4#3', 'what is swapped for a link while it is read gives nothing from outside', async () => {
  const secret = `${SECRET} Behind a swap.`;
  await writeAll(store.outside, { 'swap/SKILL.md': skillText('swapped', secret), 'swap/note.md': secret, 'swap/deep/note.md': secret });
  const outside = join(store.outside, 'swap');
  const scope = store.scope('swaps');
  await store.drop(scope, {
    's/SKILL.md': skillText('s'),
    's/note.md': 'Inside.',
    's/deep/note.md': 'Inside.',
    't/SKILL.md': skillText('t'),
    't/note.md': 'Inside.',
  });
  await until(async () => (await store.effective('swaps')).length === 2);
  const turns: readonly [string, string][] = [
    [join(scope, 's/note.md'), join(outside, 'note.md')],
    [join(scope, 's/deep'), join(outside, 'deep')],
    [join(scope, 't'), outside],
    [scope, store.outside],
    [join(store.root, SCOPES), store.outside],
  ];
  let turn = 0;
  const events = await store.events();
  for (const end = performance.now() + 2_000; performance.now() < end; turn++) {
    const [inside, target] = turns[turn % turns.length] ?? turns[0] ?? ['', ''];
    await rename(inside, `${store.outside}/kept`);
    await symlink(target, inside);
    await writeFile(join(store.root, 'first', 'turn.txt'), `${turn}`);
    await rm(inside);
    await rename(`${store.outside}/kept`, inside);
  }
  await store.settle('swaps', 'after');
  await until(async () => (await store.effective('swaps')).join() === 'after,s,t');
  expect(turn).toBeGreaterThan(turns.length);
  expect(events.all.length).toBeGreaterThan(0);
  events.stop();
  expect(await store.read('swaps', 's', 'note.md')).toBe('Inside.');
  for (const text of [secret, skillText('swapped', secret)]) expect(await holds(text)).toBe(false);
});

verifies('R-SKILL-5#2', 'a thousand changes are joined into a few, and end in the right state', async () => {
  const scope = store.scope('storm');
  const folders = Array.from({ length: 100 }, (_unused, index) => `s${index}`);
  await store.drop(scope, Object.fromEntries(folders.map((name) => [`${name}/SKILL.md`, skillText(name)])));
  await until(async () => (await store.effective('storm')).length === 100, 20_000);
  const events = await store.events();
  for (let round = 0; round < 10; round++) for (const name of folders) await writeFile(join(scope, name, 'note.md'), `Round ${round}.`);
  await rm(join(scope, 's7'), { recursive: true });
  const left = new Set(folders.filter((name) => name !== 's7'));
  const expected = [...left];
  await until(async () => {
    for (const name of left) {
      if ((await store.read('storm', name, 'note.md').catch(() => undefined)) !== 'Round 9.') return false;
      left.delete(name);
    }
    return (await store.effective('storm')).length === 99;
  }, 20_000);
  expect((await store.effective('storm')).sort()).toEqual([...expected].sort());
  await store.settle('storm', 'calm');
  await events.next(({ payload }) => payload.names.includes('calm'));
  expect(events.all.filter(({ payload }) => payload.agentId === 'storm').length).toBeLessThan(40);
  events.stop();
});

verifies('R-SKILL-5#3', 'a watching that died is noticed: changes are polled for, and told of again when it is back', async () => {
  const scope = store.scope('watched');
  await store.settle('watched', 'before');
  refuses = true;
  const died = watchers.size;
  for (const watcher of [...watchers]) watcher.removeAllListeners('change').close();
  expect(died).toBeGreaterThan(2);
  for (const name of ['polled', 'polled-again', 'and-again']) await store.settle('watched', name);
  expect(watchers.size).toBe(0);
  await rm(join(scope, 'polled'), { recursive: true });
  await until(async () => !(await store.effective('watched')).includes('polled'));
  refuses = false;
  await until(() => watchers.size > 2, 20_000);
  await store.settle('watched', 'told');
});

verifies('R-SKILL-4#1', 'a link in place of the root is refused, and the root is watched anew when it is a folder again', async () => {
  const secret = `${SECRET} Of another root.`;
  await writeAll(store.outside, {
    'other/lure/SKILL.md': skillText('lure', secret),
    'other/.agent-scopes/linked/lure/SKILL.md': skillText('lure', secret),
  });
  await rename(store.root, join(store.outside, 'kept'));
  await symlink(join(store.outside, 'other'), store.root);
  await until(async () => (await store.effective('default')).length === 0 && (await store.effective('linked')).length === 0);
  expect(Object.values(await store.refused('default'))).toEqual([expect.stringContaining('link')]);
  await rm(store.root);
  await mkdir(store.root);
  await store.settle('default', 'fresh');
  expect(await store.effective('default')).toEqual(['fresh']);
  await rm(store.root, { recursive: true });
  await rename(join(store.outside, 'kept'), store.root);
  await until(async () => (await store.effective('linked')).join() === 'fine');
  expect(await store.effective('default')).toEqual(['first']);
  expect(await holds(skillText('lure', secret))).toBe(false);
});
