import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { skillStore } from '@ambit/contracts';
import { openDatabase } from '@ambit/db';
import { collect, startNats, startPostgres, startService, type TestNats, type TestPostgres } from '@ambit/testing';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { SkillStoreConfig } from '../src/config.js';
import { SkillStoreModule } from '../src/skill-store.module.js';
import { skillText } from './upload.js';

let nats: TestNats;
let postgres: TestPostgres;
let service: Awaited<ReturnType<typeof startService>>;
let root: string;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'skills-root-'));
  await mkdir(join(root, 'first'));
  await writeFile(join(root, 'first', 'SKILL.md'), skillText('first'));
  [nats, postgres] = await Promise.all([startNats(), startPostgres()]);
  const events = await collect(nats.connection, skillStore.skillChanged);
  service = await startService('skill-store', SkillStoreModule, {
    nats,
    postgres,
    config: SkillStoreConfig,
    database: openDatabase,
    environment: { SKILLS_ROOT: root },
  });
  await events.next(({ payload }) => payload.names.includes('first'));
  events.stop();
}, 120_000);
afterAll(async () => {
  await service?.close();
  await postgres?.stop();
  await nats?.stop();
  await rm(root, { recursive: true, force: true });
});

const names = async (agentId: string) =>
  (await nats.bus.call(skillStore.effectiveSkills, { agentId, plugins: [] })).skills
    .filter(({ owner }) => owner !== 'builtin')
    .map(({ name }) => name);

/** Makes a folder aside and moves it in whole. */
async function drop(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  const aside = await mkdtemp(join(tmpdir(), 'skill-'));
  for (const [path, text] of Object.entries(files)) await writeFile(join(aside, path), text);
  await mkdir(join(folder, '..'), { recursive: true });
  await rename(aside, folder);
}

it('mirrors the root to the agent default, and a scope to its agent alone', async () => {
  const events = await collect(nats.connection, skillStore.skillChanged);
  await drop(join(root, '.agent-scopes', 'reader', 'second'), { 'SKILL.md': skillText('second') });
  await events.next(({ payload }) => payload.agentId === 'reader' && payload.names.includes('second'));
  expect(await names('reader')).toEqual(['second']);
  expect(await names('default')).toEqual(['first']);
});

it('an edited file makes a new version, a removed folder takes its skill away', async () => {
  const events = await collect(nats.connection, skillStore.skillChanged);
  await drop(join(root, 'third'), { 'SKILL.md': skillText('third'), 'script.sh': 'echo 1' });
  await events.next(({ payload }) => payload.names.includes('third') && payload.reason === 'installed');
  const before = await nats.bus.call(skillStore.getSkill, { agentId: 'default', name: 'third' });
  await writeFile(join(root, 'third', 'script.sh'), 'echo 2');
  await events.next(({ payload }) => payload.names.includes('third') && payload.reason === 'updated');
  const after = await nats.bus.call(skillStore.getSkill, { agentId: 'default', name: 'third' });
  expect(after.digest).not.toBe(before.digest);
  await rm(join(root, 'third'), { recursive: true });
  await events.next(({ payload }) => payload.names.includes('third') && payload.reason === 'removed');
  expect(await names('default')).toEqual(['first']);
});

it('follows no link, and a broken skill hides no other', async () => {
  const events = await collect(nats.connection, skillStore.skillChanged);
  await drop(join(root, 'linked'), { 'SKILL.md': skillText('linked') });
  await symlink('/etc/hostname', join(root, 'linked', 'secret.txt'));
  await drop(join(root, 'broken'), { 'SKILL.md': 'no frontmatter' });
  await drop(join(root, 'zebra'), { 'SKILL.md': skillText('zebra') });
  await events.next(({ payload }) => payload.names.includes('zebra'));
  expect(await names('default')).toEqual(expect.arrayContaining(['first', 'zebra']));
  await expect(nats.bus.call(skillStore.readSkill, { agentId: 'default', name: 'linked', path: 'secret.txt' })).rejects.toMatchObject({
    code: expect.stringMatching(/^(SKILL|FILE)_NOT_FOUND$/),
  });
});
