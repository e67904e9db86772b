import type { Bus } from '@ambit/bus';
import { sessionService, skillStore, type FileEntry, type ImportSource, type Skill } from '@ambit/contracts';
import { collect } from '@ambit/testing';
import { afterAll, beforeAll, expect, jest } from '@jest/globals';
import { zipSync } from 'fflate';
import { createHash, randomUUID } from 'node:crypto';
import { startSystem, type System } from '../system/system.js';
import { verifies } from '../verifies.js';

jest.setTimeout(120_000);
let system: System;
let bus: Bus;
beforeAll(async () => {
  system = await startSystem({ services: ['session-service', 'skill-store'] });
  bus = system.bus;
});
afterAll(() => system?.stop());

const text = (name: string, body = 'Do it.', extra = ''): string =>
  `---\nname: ${name}\ndescription: How to ${name}.\n${extra}---\n\n${body}\n`;
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

async function uploaded(files: Readonly<Record<string, string>>): Promise<FileEntry[]> {
  const entries: FileEntry[] = [];
  for (const [path, content] of Object.entries(files)) {
    const bytes = Buffer.from(content);
    const digest = sha256(bytes);
    await bus.call(skillStore.putBlob, { digest, bytes: bytes.byteLength, offset: 0, data: bytes.toString('base64') });
    entries.push({ path, mode: 'file', bytes: bytes.byteLength, digest });
  }
  return entries;
}

const put = async (agentId: string, files: Readonly<Record<string, string>>): Promise<Skill> =>
  bus.call(skillStore.putSkill, { agentId, files: await uploaded(files) });
const putText = (agentId: string, skillMd: string): Promise<Skill> => put(agentId, { 'SKILL.md': skillMd });
const read = async (agentId: string, name: string): Promise<string | undefined> =>
  (await bus.call(skillStore.readSkill, { agentId, name })).text;
/** The platform's own skills stand beside those of every agent. */
async function effective(agentId: string) {
  const { epoch, skills } = await bus.call(skillStore.effectiveSkills, { agentId, plugins: null });
  return { epoch, skills: skills.filter(({ owner }) => owner !== 'builtin') };
}
const refusal = (code: string, reason?: string) => ({
  code,
  ...(reason === undefined ? {} : { data: { reason: expect.stringMatching(reason) } }),
});

verifies(
  ['R-OWN-3#1', 'R-OWN-3#2', 'R-OWN-3#3'],
  "what happens to one agent's skill leaves another's of the same name as it was",
  async () => {
    const events = await collect(system.connection, skillStore.skillChanged);
    await putText('left', text('same', 'Left.'));
    await putText('right', text('same', 'Right.'));
    await events.next(({ payload }) => payload.agentId === 'right');
    const before = { skill: await bus.call(skillStore.getSkill, { agentId: 'right', name: 'same' }), effective: await effective('right') };
    const isAsBefore = async (): Promise<void> => {
      expect(await bus.call(skillStore.getSkill, { agentId: 'right', name: 'same' })).toEqual(before.skill);
      expect(await effective('right')).toEqual(before.effective);
      expect(await read('right', 'same')).toContain('Right.');
    };
    await putText('left', text('same', 'Left, edited.'));
    await events.next(({ payload }) => payload.agentId === 'left' && payload.reason === 'updated');
    await isAsBefore();
    await bus.call(skillStore.disableSkill, { agentId: 'left', name: 'same' });
    await events.next(({ payload }) => payload.agentId === 'left' && payload.reason === 'disabled');
    await isAsBefore();
    await bus.call(skillStore.deleteSkill, { agentId: 'left', name: 'same' });
    await events.next(({ payload }) => payload.agentId === 'left' && payload.reason === 'removed');
    await isAsBefore();
    // What was told of the other is its own beginning, and no more.
    expect(events.all.filter(({ payload }) => payload.agentId === 'right')).toHaveLength(1);
    events.stop();
  },
);

verifies('R-SKILL-2#1', 'both spellings of allowed tools are read', async () => {
  expect(await putText('spell', text('one', 'b', 'allowed-tools: Read Bash(git:*)\n'))).toMatchObject({
    allowedTools: ['Read', 'Bash(git:*)'],
  });
  expect(await putText('spell', text('two', 'b', 'allowedTools: [Read]\n'))).toMatchObject({ allowedTools: ['Read'] });
});

verifies('R-SKILL-2#2', 'two spellings that differ are invalid', async () => {
  await expect(putText('bad', text('x', 'b', 'allowed-tools: Read\nallowedTools: [Write]\n'))).rejects.toMatchObject(
    refusal('SKILL_INVALID', 'different'),
  );
});

verifies('R-SKILL-2#3', 'a missing or malformed name or description is invalid, with the reason', async () => {
  await expect(putText('bad', '---\ndescription: d\n---\n')).rejects.toMatchObject(refusal('SKILL_INVALID', 'name'));
  await expect(putText('bad', '---\nname: x\n---\n')).rejects.toMatchObject(refusal('SKILL_INVALID', 'description'));
  for (const name of ['../x', 'A', 'a b', '-a', 'a/b', '"."']) {
    await expect(putText('bad', `---\nname: ${name}\ndescription: d\n---\n`)).rejects.toMatchObject(refusal('SKILL_INVALID', 'name'));
  }
});

verifies('R-SKILL-2#4', 'a byte order mark and Windows line ends are borne', async () => {
  expect(await putText('ends', `\uFEFF${text('marked')}`)).toMatchObject({ name: 'marked', valid: true });
  expect(await putText('ends', text('windows').replaceAll('\n', '\r\n'))).toMatchObject({ name: 'windows', valid: true });
});

verifies('R-SKILL-2#5', 'broken and hostile front matter is refused and the store goes on', async () => {
  const bomb = `a: &a [x,x,x,x,x,x,x,x,x]\n${[...'bcdefghi'].map((key, index) => `${key}: &${key} [${`*${'abcdefghi'[index]},`.repeat(9).slice(0, -1)}]`).join('\n')}\n`;
  for (const hostile of [
    '---\nname: x\ndescription: d\n',
    `---\nname: x\ndescription: d\n${bomb}---\n`,
    '---\nname: x\nname: y\ndescription: d\n---\n',
    '---\nname: [\ndescription: d\n---\n',
  ]) {
    await expect(putText('bad', hostile)).rejects.toMatchObject(refusal('SKILL_INVALID', '.'));
  }
  const polluting = await putText('bad', text('proto', 'b', 'metadata:\n  __proto__:\n    polluted: true\n')).catch(
    (error: unknown) => error,
  );
  expect(polluting).not.toHaveProperty('metadata.polluted');
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  expect(await putText('bad', text('after'))).toMatchObject({ name: 'after', valid: true });
});

verifies('R-SKILL-2#6', 'names and descriptions have the limits of the specification', async () => {
  const longest = 'n'.repeat(64);
  expect(await putText('limits', text(longest))).toMatchObject({ name: longest });
  await expect(putText('limits', text(`${longest}n`))).rejects.toMatchObject(refusal('SKILL_INVALID', '64'));
  const long = await putText('limits', `---\nname: long\ndescription: ${'d'.repeat(1_025)}\n---\n`);
  expect(long.description).toHaveLength(1_024);
  expect(long.warnings.join()).toMatch(/1,?024/);
});

verifies(['R-SKILL-6#1', 'R-SKILL-6#2'], 'each change is one event, and the version grows with each', async () => {
  const events = await collect(system.connection, skillStore.skillChanged);
  const epochs = [(await effective('grows')).epoch];
  const change = async (act: () => Promise<unknown>): Promise<void> => {
    await act();
    epochs.push((await effective('grows')).epoch);
  };
  await change(() => putText('grows', text('tall')));
  await change(() => putText('grows', text('tall', 'Taller.')));
  await change(() => bus.call(skillStore.disableSkill, { agentId: 'grows', name: 'tall' }));
  await change(() => bus.call(skillStore.enableSkill, { agentId: 'grows', name: 'tall' }));
  await change(() => bus.call(skillStore.deleteSkill, { agentId: 'grows', name: 'tall' }));
  expect(epochs).toEqual([...new Set(epochs)].sort((one, other) => one - other));
  await events.next(({ payload }) => payload.agentId === 'grows' && payload.reason === 'removed');
  expect(events.all.filter(({ payload }) => payload.agentId === 'grows').map(({ payload }) => payload.reason)).toEqual([
    'installed',
    'updated',
    'disabled',
    'enabled',
    'removed',
  ]);
  events.stop();
});

verifies(['R-SKILL-6#3', 'R-IMPORT-3#3'], 'a reader during replacements sees one whole version', async () => {
  const version = (number: number): Record<string, string> => ({
    'SKILL.md': text('whole', `Version ${number}.`),
    'other.md': `${number}`,
  });
  await put('reader', version(0));
  let isReplacing = true;
  const replacing = (async () => {
    for (let number = 1; number <= 20; number++) await put('reader', version(number));
    isReplacing = false;
  })();
  let seen = 0;
  while (isReplacing) {
    const { digest } = await bus.call(skillStore.getSkill, { agentId: 'reader', name: 'whole' });
    const main = await bus.call(skillStore.readSkill, { agentId: 'reader', name: 'whole', digest });
    const other = await bus.call(skillStore.readSkill, { agentId: 'reader', name: 'whole', digest, path: 'other.md' });
    expect(main.text).toContain(`Version ${other.text}.`);
    seen += 1;
  }
  await replacing;
  expect(seen).toBeGreaterThan(5);
});

verifies(['R-SKILL-7#1', 'R-SKILL-7#2', 'R-SKILL-7#5'], 'a disabled skill is neither offered nor readable, and comes back', async () => {
  const { digest } = await putText('switch', text('toggled'));
  await bus.call(skillStore.disableSkill, { agentId: 'switch', name: 'toggled' });
  expect((await effective('switch')).skills).toEqual([]);
  await expect(read('switch', 'toggled')).rejects.toMatchObject(refusal('SKILL_NOT_FOUND'));
  await expect(bus.call(skillStore.readSkill, { agentId: 'switch', name: 'toggled', digest })).rejects.toMatchObject(
    refusal('SKILL_NOT_FOUND'),
  );
  expect((await bus.call(skillStore.listSkills, { agentId: 'switch' })).items).toMatchObject([{ name: 'toggled', enabled: false }]);
  await bus.call(skillStore.enableSkill, { agentId: 'switch', name: 'toggled' });
  expect((await effective('switch')).skills).toMatchObject([{ name: 'toggled' }]);
  expect(await read('switch', 'toggled')).toContain('Do it.');
});

verifies(
  'R-IMPORT-3#1',
  'a store that is killed while it imports leaves the target wholly old; killed right after, wholly new',
  async () => {
    for (const id of ['origin', 'target']) await bus.call(sessionService.putAgent, { id });
    const names = ['one', 'two', 'three', 'four', 'five', 'six'];
    for (const name of names) await put('origin', { 'SKILL.md': text(name, 'New.'), 'other.md': name });
    for (const name of names.slice(0, 3)) await putText('target', text(name, 'Old.'));
    const source: ImportSource = { kind: 'agent', agentId: 'origin' };
    const { skills } = await bus.call(skillStore.previewImport, { agentId: 'target', source });
    const chosen = skills.flatMap(({ name, digest, replaces }) =>
      name === null || digest === null ? [] : [{ name, digest, replaces, onConflict: 'overwrite' as const }],
    );
    const list = async () => (await bus.call(skillStore.listSkills, { agentId: 'target' })).items;
    const before = await list();
    const process = system.process('skill-store');
    const progress = await collect(system.connection, skillStore.importProgressed);
    const events = await collect(system.connection, skillStore.skillChanged);
    const begin = (importId: string): void => {
      const request = { agentId: 'target', source, skills: chosen, importId };
      // Nobody answers once it is dead, and whoever asked cannot know.
      void bus.call(skillStore.executeImport, request, { timeoutMs: 1_000 }).catch(() => undefined);
    };

    const importId = randomUUID();
    begin(importId);
    await progress.next(({ payload }) => payload.importId === importId && payload.done === 3);
    await process.kill();
    await process.start();
    // The last of six may have been stored and all of it committed by the time that the kill arrived.
    const after = await list();
    const isWholly = (body: string, all: readonly string[]): Promise<boolean> =>
      Promise.all(all.map((name) => read('target', name))).then((texts) => texts.every((one) => one?.includes(body)));
    if (after.length === before.length) expect(after).toEqual(before);
    else expect(await isWholly('New.', names)).toBe(true);

    if (after.length === before.length) {
      begin(randomUUID());
      await events.next(({ payload }) => payload.agentId === 'target' && payload.names.includes('six'));
      await process.kill();
      await process.start();
    }
    expect((await list()).map(({ name }) => name)).toEqual([...names].sort());
    expect(await isWholly('New.', names)).toBe(true);
    expect((await bus.call(skillStore.readSkill, { agentId: 'target', name: 'six', path: 'other.md' })).text).toBe('six');
    progress.stop();
    events.stop();
  },
);

async function putArchive(archive: Uint8Array): Promise<Skill> {
  const digest = sha256(archive);
  const data = Buffer.from(archive).toString('base64');
  await bus.call(skillStore.putBlob, { digest, bytes: archive.byteLength, offset: 0, data });
  return bus.call(skillStore.putSkill, { agentId: 'zip', archive: digest });
}
const packed = Buffer.from(text('packed'));

verifies('R-IMPORT-6#1', 'an archive entry that leads out is refused', async () => {
  for (const path of ['../evil.txt', 'packed/../../evil.txt', '/evil.txt', 'packed\\..\\..\\evil.txt']) {
    await expect(putArchive(zipSync({ 'packed/SKILL.md': packed, [path]: packed }))).rejects.toMatchObject(refusal('ARCHIVE_REFUSED', '.'));
  }
});

verifies('R-IMPORT-6#2', 'an archive that explodes is refused', async () => {
  const bomb = zipSync({ 'packed/SKILL.md': packed, 'packed/zeros': new Uint8Array(20 * 1024 * 1024) }, { level: 9 });
  expect(bomb.byteLength).toBeLessThan(200_000);
  await expect(putArchive(bomb)).rejects.toMatchObject(refusal('ARCHIVE_REFUSED', '.'));
});

verifies('R-IMPORT-6#3', 'archive entries that differ only in case are refused', async () => {
  await expect(putArchive(zipSync({ 'packed/SKILL.md': packed, 'packed/a.txt': packed, 'packed/A.TXT': packed }))).rejects.toMatchObject(
    refusal('ARCHIVE_REFUSED', '.'),
  );
});

verifies('R-IMPORT-6#4', 'an archive entry that is a link is refused', async () => {
  const link = { os: 3, attrs: 0o120777 * 0x10000 } as const;
  const archive = zipSync({ 'packed/SKILL.md': packed, 'packed/link': [Buffer.from('/etc/passwd'), link] });
  await expect(putArchive(archive)).rejects.toMatchObject(refusal('ARCHIVE_REFUSED', '.'));
});
