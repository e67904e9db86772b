import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { skillStore } from '@ambit/contracts';
import { until } from '@ambit/testing';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { verifies } from '../../../test/verifies.js';
import { SCOPES, SkillsRoot, writeAll } from './skills-root.js';
import { skillText } from './upload.js';

let store: SkillsRoot;
beforeAll(async () => {
  store = await SkillsRoot.start();
  await store.settle('default', 'first');
}, 120_000);
afterAll(() => store?.stop());

const skill = (name: string, extra: Readonly<Record<string, string>> = {}) => ({ 'SKILL.md': skillText(name), ...extra });

verifies('R-SKILL-1#1', 'a scope that is missing or empty is an empty catalogue, and no other stands in', async () => {
  await mkdir(store.scope('hollow'), { recursive: true });
  await store.settle('neighbour', 'second');
  for (const agentId of ['missing', 'hollow']) {
    expect(await store.effective(agentId)).toEqual([]);
    expect(await store.list(agentId)).toEqual([]);
    await expect(store.read(agentId, 'first')).rejects.toMatchObject({ code: 'SKILL_NOT_FOUND' });
  }
  expect(await store.effective('neighbour')).toEqual(['second']);
  await rm(store.scope('neighbour'), { recursive: true });
  await until(async () => (await store.list('neighbour')).length === 0);
});

verifies(['R-SKILL-1#2', 'R-SKILL-1#3'], 'a file or a link in place of the scope is refused, and says so', async () => {
  await writeAll(store.outside, { 'elsewhere/stolen/SKILL.md': skillText('stolen') });
  await mkdir(join(store.root, SCOPES), { recursive: true });
  await writeFile(store.scope('file'), skillText('file'));
  await symlink(join(store.outside, 'elsewhere'), store.scope('link'));
  await symlink(store.root, store.scope('inward'));
  for (const agentId of ['file', 'link', 'inward']) {
    await until(async () => (await store.list(agentId)).length > 0);
    expect(Object.values(await store.refused(agentId))).toEqual([expect.stringContaining('is a link or no folder')]);
    expect(await store.effective(agentId)).toEqual([]);
  }
  await expect(store.read('link', 'stolen')).rejects.toMatchObject({ code: 'SKILL_NOT_FOUND' });
  await expect(store.read('inward', 'first')).rejects.toMatchObject({ code: 'SKILL_NOT_FOUND' });
  // With a folder in its place all is well.
  await rm(store.scope('link'));
  await store.drop(join(store.scope('link'), 'own'), skill('own'));
  await until(async () => (await store.list('link')).map(({ name, valid }) => `${name} ${valid}`).join() === 'own true');
});

verifies('R-SKILL-1#4', 'what is no id of an agent has no skills, neither over the bus nor by a folder', async () => {
  for (const agentId of ['.', '..', 'a/b', 'CON']) {
    await expect(store.list(agentId)).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    await expect(store.effective(agentId)).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    await expect(store.read(agentId, 'first')).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    await expect(nothingPut(agentId)).rejects.toMatchObject({ code: 'INVALID_INPUT' });
  }
  const events = await store.events();
  await store.drop(join(store.scope('CON'), 'device'), skill('device'));
  await store.drop(join(store.scope('a'), 'b', 'nested'), skill('nested'));
  await store.settle('proper', 'third');
  await until(async () => (await store.effective('a')).length === 1);
  await events.next(({ payload }) => payload.agentId === 'proper');
  expect(events.all.flatMap(({ payload }) => payload.names)).not.toContain('device');
  const { items } = await store.nats.bus.call(skillStore.listSkills, { limit: 100 });
  expect(items.map(({ name }) => name)).not.toContain('device');
  events.stop();
});
const nothingPut = (agentId: string) => store.nats.bus.call(skillStore.putSkill, { agentId, files: [] });

verifies('R-SKILL-1#5', 'the agent default sees nothing of the scopes, its own name among them and its root a skill itself', async () => {
  await store.drop(join(store.scope('default'), 'sly'), skill('sly'));
  await store.drop(join(store.scope('private'), 'secret'), skill('secret', { 'note.md': 'Private.' }));
  await until(async () => (await store.effective('private')).length === 1);
  await store.settle('default', 'later');
  expect(await store.effective('default')).toEqual(['first', 'later']);
  await expect(store.read('default', 'secret')).rejects.toMatchObject({ code: 'SKILL_NOT_FOUND' });
  await writeFile(join(store.root, 'SKILL.md'), skillText('whole-root'));
  await until(async () => (await store.effective('default')).includes('whole-root'));
  const { tree } = await store.nats.bus.call(skillStore.getSkill, { agentId: 'default', name: 'whole-root' });
  expect(tree.map(({ path }) => path).sort()).toEqual(['SKILL.md', 'first/SKILL.md', 'later/SKILL.md']);
  await rm(join(store.root, 'SKILL.md'));
  await until(async () => (await store.effective('default')).join() === 'first,later');
  expect(await store.effective('private')).toEqual(['secret']);
});

verifies(
  ['R-SKILL-3#2', 'R-SKILL-3#4'],
  'ten folders down is found and eleven is not; what is broken is listed and hides nothing',
  async () => {
    const down = (depth: number): string => Array.from({ length: depth }, (_unused, index) => `d${index + 1}`).join('/');
    await store.drop(store.scope('deep'), {
      [`${down(9)}/tenth/SKILL.md`]: skillText('tenth'),
      [`${down(10)}/eleventh/SKILL.md`]: skillText('eleventh'),
      'a-broken/SKILL.md': 'no front matter',
      'b-nameless/SKILL.md': '---\ndescription: d\n---\n',
      'c-claims/SKILL.md': '---\nname: tenth\n---\n',
      'd-hostile/SKILL.md': '---\nname: hostile\ndescription: "\\0"\nmetadata: { "k": "\\ud800" }\n---\n',
      'z-fine/SKILL.md': skillText('fine'),
    });
    await until(async () => (await store.list('deep')).length === 6);
    expect(await store.effective('deep')).toEqual(['fine', 'tenth']);
    const refused = await store.refused('deep');
    expect(refused).toMatchObject({
      'a-broken': expect.stringContaining('frontmatter'),
      'b-nameless': expect.stringContaining('"name"'),
      hostile: expect.stringContaining('Unicode'),
    });
    expect(Object.entries(refused).find(([name]) => name.startsWith('tenth-'))?.[1]).toContain('"description"');
    // Mended, it is a skill.
    await writeFile(join(store.scope('deep'), 'a-broken', 'SKILL.md'), skillText('mended'));
    await until(async () => (await store.effective('deep')).join() === 'fine,mended,tenth' && (await store.list('deep')).length === 6);
  },
);

verifies(['R-SKILL-5#1', 'R-SKILL-5#4'], 'an edited script is another version of its skill, and nothing to any other agent', async () => {
  await store.drop(store.scope('left'), { 'tool/SKILL.md': skillText('tool'), 'tool/scripts/run.sh': 'echo 1' });
  await store.drop(store.scope('right'), { 'tool/SKILL.md': skillText('tool'), 'tool/scripts/run.sh': 'echo 1' });
  for (const agentId of ['left', 'right']) await until(async () => (await store.effective(agentId)).length === 1);
  const of = async (agentId: string) => ({
    skill: await store.nats.bus.call(skillStore.getSkill, { agentId, name: 'tool' }),
    epoch: (await store.nats.bus.call(skillStore.effectiveSkills, { agentId, plugins: [] })).epoch,
  });
  const before = { left: await of('left'), right: await of('right') };
  expect(before.left.skill.digest).toBe(before.right.skill.digest);
  const events = await store.events();
  await writeFile(join(store.scope('left'), 'tool/scripts/run.sh'), 'echo 2');
  await events.next(({ payload }) => payload.agentId === 'left' && payload.reason === 'updated');
  const left = await of('left');
  expect(left.skill.digest).not.toBe(before.left.skill.digest);
  expect(left.epoch).toBeGreaterThan(before.left.epoch);
  expect(await store.read('left', 'tool', 'scripts/run.sh')).toBe('echo 2');
  await store.settle('right', 'afterwards');
  expect((await of('right')).skill).toEqual(before.right.skill);
  expect(events.all.filter(({ payload }) => payload.agentId === 'right').flatMap(({ payload }) => payload.names)).toEqual(['afterwards']);
  events.stop();
});

it('a folder that is moved as it is keeps its skill, and the choice made about it; one that is gone takes it away', async () => {
  const scope = store.scope('mover');
  await store.drop(join(scope, 'tool'), skill('tool'));
  await until(async () => (await store.effective('mover')).length === 1);
  await store.nats.bus.call(skillStore.disableSkill, { agentId: 'mover', name: 'tool' });
  const events = await store.events();
  await mkdir(join(scope, 'group'));
  await rename(join(scope, 'tool'), join(scope, 'group/tool'));
  await events.next(({ payload }) => payload.agentId === 'mover');
  await store.settle('mover', 'other');
  expect(await store.list('mover')).toMatchObject([{ name: 'other' }, { name: 'tool', enabled: false, source: 'folder:group/tool' }]);
  expect(events.all.filter(({ payload }) => payload.reason === 'removed')).toEqual([]);
  await rm(join(scope, 'group'), { recursive: true });
  await until(async () => (await store.list('mover')).length === 1);
  // Back, it is as it went.
  await store.drop(join(scope, 'tool'), skill('tool'));
  await until(async () => (await store.list('mover')).length === 2);
  expect(await store.effective('mover')).toEqual(['other']);
  await store.nats.bus.call(skillStore.enableSkill, { agentId: 'mover', name: 'tool' });
  expect(await store.effective('mover')).toEqual(['other', 'tool']);
  events.stop();
});

verifies('R-SKILL-5#5', 'nothing is ever told of a folder of staging or backup', async () => {
  const events = await store.events();
  const scope = store.scope('stage');
  await store.drop(join(scope, `.install-new-${randomUUID()}`), skill('staged'));
  await store.drop(join(scope, 'old.backup-1'), skill('backed'));
  await store.drop(join(scope, 'node_modules', 'dependency'), skill('dependency'));
  await store.settle('stage', 'told');
  await rm(join(scope, 'old.backup-1'), { recursive: true });
  await store.settle('stage', 'told-too');
  await events.next(({ payload }) => payload.names.includes('told-too'));
  expect(events.all.filter(({ payload }) => payload.agentId === 'stage').flatMap(({ payload }) => payload.names)).toEqual([
    'told',
    'told-too',
  ]);
  expect((await store.list('stage')).map(({ name }) => name)).toEqual(['told', 'told-too']);
  expect((await readdir(scope)).length).toBe(4);
  events.stop();
});
