import { createHash, randomUUID } from 'node:crypto';
import { skillStore } from '@ambit/contracts';
import { openDatabase } from '@ambit/db';
import { collect, startNats, startPostgres, startService, withClient, type TestNats, type TestPostgres } from '@ambit/testing';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { zipSync } from 'fflate';
import { SkillStoreConfig } from '../src/config.js';
import { SkillStoreModule } from '../src/skill-store.module.js';
import { skillText, upload } from './upload.js';

let nats: TestNats;
let postgres: TestPostgres;
let service: Awaited<ReturnType<typeof startService>>;

beforeAll(async () => {
  [nats, postgres] = await Promise.all([startNats(), startPostgres()]);
  service = await startService('skill-store', SkillStoreModule, { nats, postgres, config: SkillStoreConfig, database: openDatabase });
}, 120_000);
afterAll(async () => {
  await service?.close();
  await postgres?.stop();
  await nats?.stop();
});

/** The platform's own skills stand beside those of every agent. */
async function effective(agentId: string, plugins: string[] | null = null) {
  const { epoch, skills } = await nats.bus.call(skillStore.effectiveSkills, { agentId, plugins });
  return { epoch, skills: skills.filter(({ owner }) => owner !== 'builtin') };
}

it('an agent has what it was given, and another agent none of it', async () => {
  const files = await upload(nats.bus, { 'SKILL.md': skillText('greet'), 'references/more.md': 'More.' });
  const skill = await nats.bus.call(skillStore.putSkill, { agentId: 'one', files });
  expect(skill).toMatchObject({ name: 'greet', files: 2, version: 1, enabled: true, valid: true });
  expect((await effective('one')).skills.map(({ name }) => name)).toEqual(['greet']);
  expect((await effective('two')).skills).toEqual([]);
  await expect(nats.bus.call(skillStore.readSkill, { agentId: 'two', name: 'greet' })).rejects.toMatchObject({ code: 'SKILL_NOT_FOUND' });
  expect(await nats.bus.call(skillStore.readSkill, { agentId: 'one', name: 'greet', path: 'references/more.md' })).toMatchObject({
    text: 'More.',
    next: null,
  });
});

it('one mutation is one event, and the epoch only grows', async () => {
  const events = await collect(nats.connection, skillStore.skillChanged);
  const files = await upload(nats.bus, { 'SKILL.md': skillText('count') });
  await nats.bus.call(skillStore.putSkill, { agentId: 'events', files });
  const first = await events.next(({ payload: { agentId } }) => agentId === 'events');
  await nats.bus.call(skillStore.disableSkill, { agentId: 'events', name: 'count' });
  await nats.bus.call(skillStore.disableSkill, { agentId: 'events', name: 'count' }); // already off: nothing moves
  await nats.bus.call(skillStore.enableSkill, { agentId: 'events', name: 'count' });
  const second = await events.next(({ payload: { agentId, reason } }) => agentId === 'events' && reason === 'disabled');
  const third = await events.next(({ payload: { agentId, reason } }) => agentId === 'events' && reason === 'enabled');
  expect(first.payload.epoch).toBeLessThan(second.payload.epoch);
  expect(second.payload.epoch).toBeLessThan(third.payload.epoch);
});

it('a skill that is off is neither listed as effective nor readable, by any digest', async () => {
  const files = await upload(nats.bus, { 'SKILL.md': skillText('off') });
  const { digest } = await nats.bus.call(skillStore.putSkill, { agentId: 'off', files });
  await nats.bus.call(skillStore.disableSkill, { agentId: 'off', name: 'off' });
  expect((await effective('off')).skills).toEqual([]);
  await expect(nats.bus.call(skillStore.readSkill, { agentId: 'off', name: 'off', digest })).rejects.toMatchObject({
    code: 'SKILL_NOT_FOUND',
  });
  await nats.bus.call(skillStore.enableSkill, { agentId: 'off', name: 'off' });
  expect((await effective('off')).skills).toHaveLength(1);
});

it('a replaced skill is the new one for new readers, and the pinned one by its digest', async () => {
  const before = await nats.bus.call(skillStore.putSkill, {
    agentId: 'pin',
    files: await upload(nats.bus, { 'SKILL.md': skillText('pin', 'Old.') }),
  });
  const after = await nats.bus.call(skillStore.putSkill, {
    agentId: 'pin',
    files: await upload(nats.bus, { 'SKILL.md': skillText('pin', 'New.') }),
    ifVersion: 1,
  });
  expect(after.version).toBe(2);
  expect((await nats.bus.call(skillStore.readSkill, { agentId: 'pin', name: 'pin' })).text).toContain('New.');
  expect((await nats.bus.call(skillStore.readSkill, { agentId: 'pin', name: 'pin', digest: before.digest })).text).toContain('Old.');
  await expect(
    nats.bus.call(skillStore.putSkill, {
      agentId: 'pin',
      files: await upload(nats.bus, { 'SKILL.md': skillText('pin', 'Late.') }),
      ifVersion: 1,
    }),
  ).rejects.toMatchObject({ code: 'VERSION_CONFLICT', data: { version: 2 } });
});

it.each([
  ['no frontmatter', '# Hello', 'frontmatter'],
  ['no description', '---\nname: x\n---\n', 'description'],
  ['a bad name', '---\nname: ../x\ndescription: d\n---\n', 'lower-case'],
  ['repeated keys', '---\nname: x\nname: y\ndescription: d\n---\n', 'YAML'],
  ['aliases', '---\nname: x\ndescription: &a d\nmetadata: { k: *a }\n---\n', 'YAML'],
  ['two spellings that differ', skillText('x', 'b', 'allowed-tools: Read\nallowedTools: [Write]\n'), 'different'],
])('refuses a skill with %s and says why', async (_what, text, reason) => {
  const refused = nats.bus.call(skillStore.putSkill, { agentId: 'bad', files: await upload(nats.bus, { 'SKILL.md': text }) });
  await expect(refused).rejects.toMatchObject({ code: 'SKILL_INVALID', data: { reason: expect.stringContaining(reason) } });
});

it('asks for bytes that were not uploaded, and refuses bytes that are not what they claim', async () => {
  const digest = 'a'.repeat(64);
  await expect(nats.bus.call(skillStore.putSkill, { agentId: 'x', files: [{ path: 'SKILL.md', bytes: 3, digest }] })).rejects.toMatchObject(
    { code: 'BLOB_MISSING', data: { digests: [digest] } },
  );
  await expect(
    nats.bus.call(skillStore.putBlob, { digest, bytes: 3, offset: 0, data: Buffer.from('abc').toString('base64') }),
  ).rejects.toMatchObject({ code: 'BLOB_DIGEST' });
  await expect(
    nats.bus.call(skillStore.putBlob, { digest, bytes: 9, offset: 5, data: Buffer.from('abc').toString('base64') }),
  ).rejects.toMatchObject({ code: 'BLOB_OFFSET', data: { have: 0 } });
});

it('takes a zip of a folder, and refuses one that leaves it', async () => {
  const put = async (files: Record<string, Uint8Array>) => {
    const archive = Buffer.from(zipSync(files));
    const digest = createHash('sha256').update(archive).digest('hex');
    await nats.bus.call(skillStore.putBlob, { digest, bytes: archive.byteLength, offset: 0, data: archive.toString('base64') });
    return nats.bus.call(skillStore.putSkill, { agentId: 'zip', archive: digest });
  };
  expect(await put({ 'packed/SKILL.md': Buffer.from(skillText('packed')), 'packed/a/b.txt': Buffer.from('x') })).toMatchObject({
    name: 'packed',
    files: 2,
  });
  await expect(put({ 'packed/SKILL.md': Buffer.from(skillText('packed')), '../evil.txt': Buffer.from('x') })).rejects.toMatchObject({
    code: 'ARCHIVE_REFUSED',
  });
});

it('a plugin’s skills are there while it is; an owned skill of the same name wins', async () => {
  const owner = 'plugin:acme';
  const skills = [
    { files: await upload(nats.bus, { 'SKILL.md': skillText('shared', 'Of the plugin.') }) },
    { files: await upload(nats.bus, { 'SKILL.md': skillText('given') }) },
  ];
  expect(await nats.bus.call(skillStore.putContribution, { owner, projectId: 'default', skills })).toEqual({ names: ['shared', 'given'] });
  await nats.bus.call(skillStore.putSkill, {
    agentId: 'guest',
    files: await upload(nats.bus, { 'SKILL.md': skillText('shared', 'My own.') }),
  });
  expect((await effective('guest', ['acme'])).skills).toMatchObject([
    { name: 'given', origin: 'plugin', owner },
    { name: 'shared', origin: 'owned', shadows: owner },
  ]);
  expect((await effective('guest', [])).skills.map(({ name }) => name)).toEqual(['shared']);
  await expect(nats.bus.call(skillStore.deleteSkill, { agentId: 'guest', name: 'given' })).rejects.toMatchObject({ code: 'PLUGIN_OWNED' });
  await expect(nats.bus.call(skillStore.putContribution, { owner: 'plugin:other', projectId: 'default', skills })).rejects.toMatchObject({
    code: 'NAME_TAKEN',
  });
  expect(await nats.bus.call(skillStore.revokeOwner, { owner, fence: 1 })).toEqual({ withdrawn: 2 });
  expect((await effective('guest', ['acme'])).skills.map(({ name }) => name)).toEqual(['shared']);
  await expect(nats.bus.call(skillStore.readSkill, { agentId: 'guest', name: 'given' })).rejects.toMatchObject({ code: 'SKILL_NOT_FOUND' });
});

it('with skills switched off for everybody there are none at run time, and all of them in the lists', async () => {
  const { digest } = await nats.bus.call(skillStore.putSkill, {
    agentId: 'master',
    files: await upload(nats.bus, { 'SKILL.md': skillText('mastered'), 'scripts/run.sh': 'echo 1' }),
  });
  const path = 'scripts/run.sh';
  await nats.bus.call(skillStore.enableScript, { agentId: 'master', name: 'mastered', digest, path });
  const before = await nats.bus.call(skillStore.effectiveSkills, { agentId: 'master', plugins: [] });
  expect(before.skills.map(({ name }) => name)).toEqual(expect.arrayContaining(['ambit-settings', 'mastered']));
  expect(await nats.bus.call(skillStore.listSwitches, {})).toEqual({ items: [{ name: 'skills', enabled: true }] });
  const events = await collect(nats.connection, skillStore.skillChanged);
  await nats.bus.call(skillStore.putSwitch, { name: 'skills', enabled: false });
  await nats.bus.call(skillStore.putSwitch, { name: 'skills', enabled: false }); // already off: nothing moves
  await events.next(({ payload }) => payload.agentId === 'all' && payload.reason === 'disabled');
  const off = await nats.bus.call(skillStore.effectiveSkills, { agentId: 'master', plugins: [] });
  expect(off.skills).toEqual([]);
  expect(off.epoch).toBeGreaterThan(before.epoch);
  const notFound = { code: 'SKILL_NOT_FOUND' };
  await expect(nats.bus.call(skillStore.readSkill, { agentId: 'master', name: 'mastered', digest })).rejects.toMatchObject(notFound);
  await expect(nats.bus.call(skillStore.readScript, { agentId: 'master', name: 'mastered', digest, path })).rejects.toMatchObject(notFound);
  expect((await nats.bus.call(skillStore.listSkills, { agentId: 'master' })).items).toMatchObject([{ name: 'mastered', enabled: true }]);
  await nats.bus.call(skillStore.putSwitch, { name: 'skills', enabled: true });
  await events.next(({ payload }) => payload.agentId === 'all' && payload.reason === 'enabled');
  expect((await nats.bus.call(skillStore.effectiveSkills, { agentId: 'master', plugins: [] })).skills).toEqual(before.skills);
  expect(events.all.filter(({ payload }) => payload.agentId === 'all')).toHaveLength(2);
  events.stop();
});

it('a draft is installed by its session and its digest, once, for a week, and over nobody else’s skill', async () => {
  const [sessionId, other] = [randomUUID(), randomUUID()];
  const draft = (name: string, body = 'Do it.', session = sessionId) =>
    nats.bus.call(skillStore.putDraft, { sessionId: session, files: [{ path: 'SKILL.md', text: skillText(name, body) }] });
  const install = (of: { readonly name: string; readonly digest: string }, session = sessionId) =>
    nats.bus.call(skillStore.installDraft, {
      sessionId: session,
      agentId: 'drafted',
      projectId: 'default',
      name: of.name,
      digest: of.digest,
    });
  const unknown = { code: 'DRAFT_UNKNOWN' };

  const first = await draft('drafted');
  const second = await draft('drafted', 'Do it well.');
  await expect(install(first)).rejects.toMatchObject(unknown);
  await expect(install(second, other)).rejects.toMatchObject(unknown);
  expect(await install(second)).toEqual({ agentId: 'drafted', name: 'drafted', digest: second.digest, version: 1 });
  await expect(install(second)).rejects.toMatchObject(unknown);
  // What came from this session may be drafted and installed anew; what others gave the agent may not.
  expect(await install(await draft('drafted', 'Do it better.'))).toMatchObject({ version: 2 });
  await expect(install(await draft('drafted', 'Do it worse.', other), other)).rejects.toMatchObject({
    code: 'NAME_TAKEN',
    data: { name: 'drafted' },
  });
  expect(await nats.bus.call(skillStore.readSkill, { agentId: 'drafted', name: 'drafted' })).toMatchObject({
    text: expect.stringContaining('better'),
  });

  for (const path of ['notes.md', 'scripts/../SKILL.md', '/SKILL.md', 'assets/', 'references/.hidden'])
    await expect(nats.bus.call(skillStore.putDraft, { sessionId, files: [{ path, text: 'x' }] })).rejects.toMatchObject({
      code: 'INVALID_INPUT',
    });
  const long = { path: 'SKILL.md', text: skillText('long', 'x'.repeat(99_990)) };
  await expect(nats.bus.call(skillStore.putDraft, { sessionId, files: [long] })).rejects.toMatchObject({ code: 'INVALID_INPUT' });
  await expect(draft('Not a name')).rejects.toMatchObject({ code: 'SKILL_INVALID' });

  for (let index = 0; index < 16; index++) await draft(`many-${index}`);
  await expect(draft('one-more')).rejects.toMatchObject({ code: 'DRAFT_LIMIT', data: { limit: 16 } });
  expect(await nats.bus.call(skillStore.discardDraft, { sessionId, name: 'many-0' })).toEqual({ discarded: true });
  expect(await nats.bus.call(skillStore.discardDraft, { sessionId, name: 'many-0' })).toEqual({ discarded: false });
  const last = await draft('one-more');
  await withClient(postgres.url, async (client) => void (await client.query(`UPDATE skill_store.draft SET expires_at = now()`)));
  await expect(install(last)).rejects.toMatchObject(unknown);
  await expect(nats.bus.call(skillStore.readDraft, { sessionId, name: 'one-more' })).rejects.toMatchObject(unknown);
  expect(await nats.bus.call(skillStore.listDrafts, { sessionId })).toEqual({ items: [] });
});
