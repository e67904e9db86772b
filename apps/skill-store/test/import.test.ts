import { ImportFormat, skillStore, type ImportSource } from '@ambit/contracts';
import { collect } from '@ambit/testing';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { zipSync } from 'fflate';
import { z } from 'zod';
import { verifies } from '../../../test/verifies.js';
import { choose, corpus, files, from, ImportWorld, tarGz } from './import-world.js';
import { skillText, upload } from './upload.js';

let world: ImportWorld;
beforeAll(async () => {
  world = await ImportWorld.start();
}, 120_000);
afterAll(() => world?.stop());

const refusal = (reason: string) => ({ code: 'IMPORT_REFUSED', data: { reason: expect.stringContaining(reason) } });

verifies(['R-IMPORT-1#1', 'R-IMPORT-1#5'], 'an import without a target, or with a path, is refused as a request', async () => {
  const source = from('shelf');
  const loose = { ...skillStore.previewImport, input: z.record(z.string(), z.unknown()) };
  const ask = (input: Readonly<Record<string, unknown>>) => world.bus.call(loose, input);
  await expect(ask({ source })).rejects.toMatchObject({ code: 'INVALID_INPUT', data: { issues: [{ path: 'agentId' }] } });
  for (const wrong of [
    { agentId: 'desk', source, path: '/srv/skills' },
    { agentId: 'desk', source: { ...source, path: '../../shelf' } },
    { agentId: 'desk', source: { kind: 'files', format: 'agents', root: '/etc', files: [] } },
    { agentId: '../desk', source },
    { agentId: 'desk', source: from('/shelf') },
  ])
    await expect(ask(wrong)).rejects.toMatchObject({ code: 'INVALID_INPUT' });
  const skills = [{ name: '../x', digest: 'a'.repeat(64) }];
  await expect(world.bus.call(skillStore.executeImport, { agentId: 'desk', source, skills })).rejects.toMatchObject({
    code: 'INVALID_INPUT',
  });
  const twice = [0, 1].map(() => ({ name: 'one', digest: 'a'.repeat(64) }));
  await expect(world.bus.call(skillStore.executeImport, { agentId: 'desk', source, skills: twice })).rejects.toMatchObject({
    code: 'INVALID_INPUT',
  });
});

verifies(['R-IMPORT-1#2', 'R-IMPORT-1#3'], 'a target that is unknown, has no skills of its own, or is the source is refused', async () => {
  await world.put('shelf', 'greet');
  const chosen = choose((await world.preview('desk', from('shelf'))).skills);
  for (const [target, code] of [
    ['no-desk', 'AGENT_UNKNOWN'],
    ['program', 'IMPORT_TARGET'],
    ['shelf', 'IMPORT_SAME_AGENT'],
  ] as const) {
    await expect(world.preview(target, from('shelf'))).rejects.toMatchObject({ code });
    await expect(world.execute(target, from('shelf'), chosen)).rejects.toMatchObject({ code });
    if (target !== 'shelf') expect(await world.list(target)).toEqual([]);
  }
  await expect(world.preview('desk', from('no-shelf'))).rejects.toMatchObject({ code: 'AGENT_UNKNOWN' });
});

verifies(
  ['R-IMPORT-1#4', 'R-IMPORT-4#1', 'R-IMPORT-4#2', 'R-IMPORT-4#3'],
  'of three skills the one edited since its preview fails and says so; the others are installed, in one event of the target',
  async () => {
    const events = await collect(world.connection, skillStore.skillChanged);
    for (const name of ['first', 'gone', 'second', 'third']) await world.put('library', name);
    const { skills } = await world.preview('reader', from('library'));
    expect(skills.map(({ name, status }) => [name, status])).toEqual(['first', 'gone', 'second', 'third'].map((name) => [name, 'ready']));
    await world.put('library', 'second', 'Edited.');
    await world.bus.call(skillStore.deleteSkill, { agentId: 'library', name: 'gone' });
    await events.next(({ payload }) => payload.agentId === 'library' && payload.reason === 'removed');
    const ofSource = (): number => events.all.filter(({ payload }) => payload.agentId === 'library').length;
    const before = ofSource();
    const { results, failed } = await world.execute('reader', from('library'), choose(skills));
    expect(results.map(({ name, outcome, code }) => [name, outcome, code])).toEqual([
      ['first', 'installed', null],
      ['gone', 'failed', 'SKILL_NOT_FOUND'],
      ['second', 'failed', 'SOURCE_CHANGED'],
      ['third', 'installed', null],
    ]);
    expect(failed).toBe(2);
    for (const { reason } of results.filter(({ outcome }) => outcome === 'failed')) expect(reason).toContain('preview again');
    expect(await world.names('reader')).toEqual(['first', 'third']);
    const { items } = await world.bus.call(skillStore.listAudit, { after: 0 });
    const audited = items.filter(({ target }) => target?.startsWith('reader/'));
    expect(audited.map(({ target, action, reason, afterDigest }) => [target, action, reason, afterDigest])).toEqual(
      ['first', 'third'].map((name) => {
        const { digest } = skills.find((one) => one.name === name) ?? {};
        return [`reader/${name}`, 'skill.installed', `imported from agent:library/${name}`, digest];
      }),
    );
    expect((await world.get('reader', 'first')).source).toBe('agent:library/first');
    await world.put('marker', 'end');
    await events.next(({ payload }) => payload.agentId === 'marker');
    const told = events.all.filter(({ payload }) => payload.agentId === 'reader');
    expect(told.map(({ payload }) => [payload.reason, payload.names])).toEqual([['installed', ['first', 'third']]]);
    expect(ofSource()).toBe(before);
    events.stop();
  },
);

verifies('R-IMPORT-2#2', 'the target is a copy: its digest stays when the source is edited and deleted', async () => {
  await world.putFiles('origin', { 'SKILL.md': skillText('copied', 'As it was.'), 'references/deep/more.md': 'More.' });
  await world.bring('copy', from('origin'));
  const { digest } = await world.get('copy', 'copied');
  await world.put('origin', 'copied', 'Edited.');
  expect((await world.get('copy', 'copied')).digest).toBe(digest);
  await world.bus.call(skillStore.deleteSkill, { agentId: 'origin', name: 'copied' });
  expect(await world.get('copy', 'copied')).toMatchObject({ digest, enabled: true, version: 1 });
  expect(await world.text('copy', 'copied', 'references/deep/more.md')).toBe('More.');
});

verifies('R-IMPORT-2#1', 'a link anywhere in what is sent refuses all of it', async () => {
  const manifest = { path: 'linked/SKILL.md', bytes: Buffer.from(skillText('linked')) };
  for (const link of [
    { path: 'linked/references/passwd', type: '2', linkTo: '/etc/passwd' },
    { path: 'linked/other.md', type: '1', linkTo: 'linked/SKILL.md' },
    { path: 'linked/device', type: '3' },
    { path: 'elsewhere', type: '2', linkTo: 'linked' },
  ])
    await expect(world.preview('links', await world.packed(tarGz([manifest, link])))).rejects.toMatchObject(refusal('link'));
  const zip = zipSync({ 'linked/SKILL.md': manifest.bytes, 'linked/a': [Buffer.from('b'), { os: 3, attrs: 0o120777 * 0x10000 }] });
  await expect(world.preview('links', await world.packed(zip))).rejects.toMatchObject(refusal('link'));
});

describe('a name that is taken', () => {
  verifies(['R-IMPORT-3#5'], 'skip leaves the target as it was', async () => {
    const before = await world.put('keeps', 'same', 'Mine.');
    await world.put('offers', 'same', 'Theirs.');
    const shown = (await world.preview('keeps', from('offers'))).skills;
    expect(shown).toMatchObject([{ status: 'conflict', replaces: before.digest, suggestedName: 'same-copy' }]);
    expect((await world.execute('keeps', from('offers'), choose(shown))).results).toMatchObject([
      { outcome: 'skipped', as: null, code: null },
    ]);
    expect(await world.list('keeps')).toEqual([before]);
  });

  verifies('R-IMPORT-3#2', 'imports at once get different names, and only the name of each copy differs', async () => {
    await world.put('busy', 'same', 'Mine.');
    await world.putFiles('offers-more', { 'SKILL.md': skillText('same', 'Theirs.'), 'notes.md': 'n' });
    const source = from('offers-more');
    const chosen = choose((await world.preview('busy', source)).skills, 'rename');
    const all = await Promise.all(Array.from({ length: 6 }, () => world.execute('busy', source, chosen)));
    const given = all.map(({ results }) => String(results[0]?.as)).sort();
    expect(given).toEqual(['same-copy', ...Array.from({ length: 5 }, (_, index) => `same-copy-${index + 2}`)].sort());
    for (const name of given)
      expect(await world.text('busy', name)).toBe(skillText('same', 'Theirs.').replace('name: same', `name: ${name}`));
    expect(await world.text('busy', 'same')).toContain('Mine.');
    const wished = await world.execute(
      'busy',
      source,
      chosen.map((choice) => ({ ...choice, newName: 'other' })),
    );
    expect(wished.results).toMatchObject([{ outcome: 'renamed', as: 'other' }]);
    expect(await world.text('busy', 'other', 'notes.md')).toBe('n');
  });

  it('overwrite replaces what was previewed and nothing else, and keeps the switch as it is', async () => {
    const first = await world.put('old', 'same', 'One.');
    await world.put('new', 'same', 'Two.');
    await world.bus.call(skillStore.disableSkill, { agentId: 'old', name: 'same' });
    const chosen = choose((await world.preview('old', from('new'))).skills, 'overwrite');
    await world.put('old', 'same', 'Edited meanwhile.');
    expect((await world.execute('old', from('new'), chosen)).results).toMatchObject([{ outcome: 'failed', code: 'TARGET_CHANGED' }]);
    await world.put('old', 'same', 'One.');
    expect((await world.get('old', 'same')).digest).toBe(first.digest);
    expect((await world.execute('old', from('new'), chosen)).results).toMatchObject([{ outcome: 'overwritten', as: 'same' }]);
    expect(await world.get('old', 'same')).toMatchObject({
      enabled: false,
      source: 'agent:new/same',
      digest: (await world.get('new', 'same')).digest,
    });
    expect((await world.bring('old', from('new'), 'overwrite')).results).toMatchObject([{ outcome: 'skipped' }]);
  });

  verifies('R-IMPORT-3#3', 'whoever reads while imports overwrite sees one whole version', async () => {
    const version = (number: number) => ({ 'SKILL.md': skillText('whole', `Version ${number}.`), 'other.md': `${number}` });
    await world.putFiles('read', version(0));
    let isImporting = true;
    const importing = (async () => {
      for (let number = 1; number <= 8; number++) {
        await world.putFiles('written', version(number));
        const { results } = await world.bring('read', from('written'), 'overwrite');
        expect(results).toMatchObject([{ outcome: 'overwritten' }]);
      }
    })().finally(() => (isImporting = false));
    const seen = new Set<string>();
    while (isImporting) {
      const { digest, tree } = await world.get('read', 'whole');
      const read = (path: string) => world.bus.call(skillStore.readSkill, { agentId: 'read', name: 'whole', path, digest });
      const other = (await read('other.md')).text;
      expect((await read('SKILL.md')).text).toContain(`Version ${other}.`);
      expect(tree).toHaveLength(2);
      seen.add(String(other));
    }
    await importing;
    expect(seen.size).toBeGreaterThan(1);
  });

  verifies('R-SKILL-14#5', 'a plugin’s skill is shown as unavailable, with the reason', async () => {
    const skills = [{ files: await upload(world.bus, { 'SKILL.md': skillText('lent') }) }];
    await world.bus.call(skillStore.putContribution, { owner: 'plugin:acme', projectId: 'default', skills });
    expect((await world.preview('desk', from('offers'))).skills).toMatchObject([
      { name: 'same' },
      { name: 'lent', status: 'unavailable', digest: null, reason: expect.stringContaining('plugin:acme') },
    ]);
    const chosen = [{ name: 'lent', digest: 'a'.repeat(64) }];
    const { results } = await world.bus.call(skillStore.executeImport, { agentId: 'desk', source: from('offers'), skills: chosen });
    expect(results).toMatchObject([{ outcome: 'failed', code: 'PLUGIN_OWNED' }]);
    await world.bus.call(skillStore.revokeOwner, { owner: 'plugin:acme', fence: 1 });
  });
});

describe('what other tools keep', () => {
  const pages: readonly ImportFormat[] = ['windsurf', 'copilot', 'kiro', 'antigravity'];
  const folders = ImportFormat.options.filter((format) => !pages.includes(format));

  it.each(folders)('a folder of %s is read where that tool keeps its skills, and every file of a skill comes along', async (format) => {
    const all = await corpus(format);
    const target = `of-${format}`;
    const source = await world.sent(all, format);
    const { results, failed } = await world.bring(target, source);
    const manifests = all.filter(({ path }) => /\/skills\/[^/]+\/SKILL\.md$/.test(path));
    expect(failed).toBe(0);
    expect(results.map(({ as }) => as).sort()).toEqual(manifests.map(({ path }) => path.split('/').at(-2)).sort());
    for (const { path, bytes, executable } of all) {
      const [, name = '', inSkill = ''] = /\/skills\/([^/]+)\/(.+)$/.exec(path) ?? [];
      if (name === '' || inSkill === 'SKILL.md') continue;
      expect(await world.text(target, name, inSkill)).toBe(bytes.toString());
      expect((await world.get(target, name)).tree).toContainEqual(
        expect.objectContaining({ path: inSkill, mode: executable ? 'executable' : 'file' }),
      );
    }
    // Packed either way it is the same, so there is nothing left to do.
    const tar = tarGz(all.map(({ path, bytes, executable }) => ({ path: `./${path}`, bytes, executable })));
    const modes = (executable: boolean) => ({ os: 3, attrs: (executable ? 0o100755 : 0o100644) * 0x10000 });
    const zip = zipSync(Object.fromEntries(all.map(({ path, bytes, executable }) => [`home/${path}`, [bytes, modes(executable)]])));
    for (const archive of [tar, zip])
      for (const { name, digest } of (await world.preview(target, await world.packed(archive, format))).skills)
        expect((await world.get(target, String(name))).digest).toBe(digest);
  });

  it('a skill of Claude Code gets its name from its folder and its description from its text; what has no effect here is told', async () => {
    const { skills, dropped } = await world.preview('claude', await world.sent(await corpus('claude-code'), 'claude-code'));
    expect(skills.map(({ name, dropped: lost }) => [name, lost])).toEqual([
      ['explain-code', []],
      [
        'review-changes',
        ['the field "model" has no effect', 'the field "hooks" has no effect', expect.stringContaining('commands in the text')],
      ],
    ]);
    expect(dropped).toEqual(['.claude/settings.json']);
    await world.bring('claude', await world.sent(await corpus('claude-code'), 'claude-code'));
    expect(await world.get('claude', 'explain-code')).toMatchObject({
      description: 'Explains a piece of code with an everyday comparison.',
      source: 'external:claude-code/explain-code',
    });
    expect(await world.get('claude', 'review-changes')).toMatchObject({ allowedTools: ['Read', 'Grep', 'Bash(git diff:*)'], scripts: [] });
    // For the others it is the specification that says what a skill has to have.
    const elsewhere = (await corpus('claude-code')).map((file) => ({ ...file, path: file.path.replace('.claude/', '') }));
    await expect(world.preview('claude', await world.sent(await corpus('claude-code')))).rejects.toMatchObject(refusal('.agents/skills'));
    expect((await world.preview('claude', await world.sent(elsewhere))).skills).toMatchObject([
      { status: 'unavailable', reason: expect.stringContaining('frontmatter') },
      { status: 'unavailable', reason: expect.stringContaining('name') },
    ]);
  });

  it.each([
    {
      format: 'windsurf',
      name: 'deploy-a-preview',
      description: 'Puts a branch where others can look at it.',
      lost: [],
      loose: ['.windsurf/rules/older/unused.md'],
    },
    {
      format: 'copilot',
      name: 'write-tests',
      description: 'Writes tests for the selected file',
      lost: ['agent', 'model', 'tools'],
      loose: ['.github/copilot-instructions.md'],
    },
    {
      format: 'kiro',
      name: 'api-errors',
      description: 'How errors of the API are written, and what they may tell.',
      lost: ['inclusion', 'fileMatchPattern'],
      loose: [],
    },
    { format: 'antigravity', name: 'release-check', description: 'Goes through what has to hold before a release.', lost: [], loose: [] },
  ] as const)('a page of $format becomes a skill: name and description from where the tool has them, its text as it is', async (page) => {
    const { format, name, description, lost, loose } = page;
    const all = await corpus(format);
    const { skills, dropped } = await world.preview(format, await world.sent(all, format));
    const without = lost.map((field) => expect.stringContaining(`"${field}"`));
    expect(skills).toMatchObject([{ name, status: 'ready', files: 1, dropped: without }]);
    expect(dropped).toEqual(loose);
    await world.bring(format, await world.sent(all, format));
    expect(await world.get(format, name)).toMatchObject({ description, source: `external:${format}/${name}`, allowedTools: null });
    const text = all.find(({ path }) => path === skills[0]?.folder)?.bytes.toString() ?? '';
    expect((await world.text(format, name))?.endsWith(text.slice(text.lastIndexOf('---\n') + 1))).toBe(true);
    const outside = files({ '/x.md': '# x', '/x.prompt.md': 'x' });
    await expect(world.preview(format, await world.sent(outside, format))).rejects.toMatchObject(refusal('path'));
    await expect(world.preview(format, await world.sent(files({ 'x/SKILL.txt': '' }), format))).rejects.toMatchObject(refusal('page'));
  });

  verifies('R-IMPORT-5#3', 'files below folders of a skill come along; what stays behind is named', async () => {
    const deep = `${'deep/'.repeat(28)}end.md`;
    const source = await world.sent(
      files({
        'nested/SKILL.md': skillText('nested'),
        [`nested/references/${deep}`]: 'end',
        'nested/other/SKILL.md': 'A file of the skill, and none.',
        'nested/.git/HEAD': 'ref',
        'nested/node_modules/left/index.js': '1',
        'README.md': 'Of no skill.',
      }),
    );
    const { skills, dropped } = await world.preview('nests', source);
    expect(skills).toMatchObject([{ name: 'nested', files: 3 }]);
    expect(skills[0]?.dropped).toEqual([expect.stringContaining('.git/HEAD'), expect.stringContaining('node_modules/left/index.js')]);
    expect(dropped).toEqual(['README.md']);
    await world.execute('nests', source, choose(skills));
    expect(await world.text('nests', 'nested', `references/${deep}`)).toBe('end');
    expect(await world.text('nests', 'nested', 'other/SKILL.md')).toContain('and none');
    const both = await world.sent(files({ 'both/SKILL.md': skillText('both'), 'both/a': '1', 'both/a/b': '2' }));
    await expect(world.preview('nests', both)).rejects.toMatchObject(refusal('below a file'));
  });

  verifies('R-IMPORT-5#1', 'a name that leads elsewhere and a path that does are refused, whatever format they come in', async () => {
    for (const format of folders) {
      const bad = (name: string) => files({ 'good/SKILL.md': skillText('good'), 'x/SKILL.md': skillText(name) });
      for (const name of ['../x', '/etc/x', 'a/../../b']) {
        const { skills } = await world.preview('strict', await world.sent(bad(name), format));
        expect(skills).toMatchObject([
          { name: 'good', status: 'ready' },
          { status: 'unavailable', digest: null, reason: expect.stringContaining(name) },
        ]);
      }
    }
    for (const path of ['../x/SKILL.md', '/x/SKILL.md', 'x/../../y/SKILL.md', 'C:/x/SKILL.md', 'x\\SKILL.md']) {
      const all = files({ [path]: skillText('x') });
      await expect(world.preview('strict', await world.sent(all))).rejects.toMatchObject(refusal('path'));
      await expect(world.preview('strict', await world.packed(tarGz(all)))).rejects.toMatchObject(refusal('path'));
    }
    expect(await world.list('strict')).toEqual([]);
  });

  verifies('R-IMPORT-5#2', 'more than 50 MiB are refused before a byte is asked for, and so is front matter that is no YAML', async () => {
    const part = { mode: 'file' as const, bytes: 10 * 1024 * 1024, digest: 'b'.repeat(64) };
    const large = ['SKILL.md', 'a', 'b', 'c', 'd', 'e'].map((path) => ({ ...part, path: `large/${path}` }));
    const source = (all: typeof large): ImportSource => ({ kind: 'files', format: 'agents', files: all });
    await expect(world.preview('strict', source(large))).rejects.toMatchObject(refusal('62914560 bytes'));
    await expect(world.preview('strict', source(large.slice(0, 5)))).rejects.toMatchObject({ code: 'BLOB_MISSING' });
    const noise = Buffer.from(Array.from({ length: 3 * 1024 * 1024 }, (_, index) => (index * 2_654_435_761) >>> 13));
    const packedLarge = tarGz(Array.from({ length: 17 }, (_, index) => ({ path: `large/${index}`, bytes: noise })));
    expect(packedLarge.byteLength).toBeLessThan(50 * 1024 * 1024);
    await expect(world.preview('strict', await world.packed(packedLarge))).rejects.toMatchObject(refusal('an import takes at most'));
    const endless = `---\nname: x\ndescription: d\nmetadata:\n${'  k: v\n'.repeat(20_000)}---\n`;
    expect((await world.preview('strict', await world.sent(files({ 'x/SKILL.md': endless })))).skills).toMatchObject([
      { status: 'unavailable', reason: expect.stringContaining('characters') },
    ]);
    for (const yaml of ['name: [', 'name: x\nname: y', 'name: &a x\nmetadata: { k: *a }', '\t- x'])
      expect(
        (await world.preview('strict', await world.sent(files({ 'x/SKILL.md': `---\n${yaml}\ndescription: d\n---\n` })))).skills,
      ).toMatchObject([{ status: 'unavailable', reason: expect.stringContaining('YAML') }]);
  });

  it('an archive that explodes, or holds one name twice by case or normal form, is refused', async () => {
    const manifest = { path: 'x/SKILL.md', bytes: Buffer.from(skillText('x')) };
    const bomb = tarGz([manifest, { path: 'x/zeros', bytes: Buffer.alloc(40 * 1024 * 1024) }]);
    expect(bomb.byteLength).toBeLessThan(100_000);
    await expect(world.preview('strict', await world.packed(bomb))).rejects.toMatchObject(refusal('unpacked'));
    for (const [one, other] of [
      ['x/a.txt', 'x/A.TXT'],
      ['x/\u00e9.md', 'x/e\u0301.md'],
      ['x/stra\u00dfe', 'x/STRASSE'],
    ] as const) {
      const both = [one, other].map((path) => ({ path, bytes: Buffer.from('1') }));
      await expect(world.preview('strict', await world.packed(tarGz([manifest, ...both])))).rejects.toMatchObject(refusal('twice'));
      await expect(
        world.preview('strict', await world.sent([manifest, ...both].map((file) => ({ ...file, executable: false })))),
      ).rejects.toMatchObject(refusal('twice'));
    }
    for (const broken of [Buffer.from('PK nonsense'), Buffer.from([0x1f, 0x8b, 0]), bomb.subarray(0, 2_000), tarGz([])])
      await expect(world.preview('strict', await world.packed(broken))).rejects.toMatchObject(refusal('readable'));
    await expect(
      world.preview('strict', await world.packed(tarGz([{ path: 'x/skill.md', bytes: manifest.bytes }]))),
    ).resolves.toMatchObject({
      skills: [{ status: 'unavailable', reason: expect.stringContaining('SKILL.md') }],
    });
    await expect(
      world.preview('strict', await world.packed(tarGz([{ path: 'x/README.md', bytes: manifest.bytes }]))),
    ).rejects.toMatchObject(refusal('no SKILL.md'));
  });
});
