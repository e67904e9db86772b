import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { readSkillFile } from './skill-file.reader.js';
import { adaptSkillFile, renameSkillFile } from './skill-file.writer.js';

const read = (text: string) => readSkillFile(Buffer.from(text), null);
const rename = (text: string, name: string) => {
  const bytes = renameSkillFile(Buffer.from(text), name);
  return bytes === undefined ? undefined : Buffer.from(bytes).toString();
};

it.each([
  ['---\nname: old # why\ndescription: d\n---\nbody\n', '---\nname: new\ndescription: d\n---\nbody\n'],
  [
    '---\n# first\ndescription: d\nmetadata:\n  name: old\nname: "old"\n---\nname: old\n',
    '---\n# first\ndescription: d\nmetadata:\n  name: old\nname: new\n---\nname: old\n',
  ],
  ['---\ndescription: Use when: x\nname: old\n---\n', '---\ndescription: Use when: x\nname: new\n---\n'],
  ['\uFEFF---\r\nname: old\r\ndescription: d\r\n---\r\nbody\r\n', '---\nname: new\ndescription: d\n---\nbody\n'],
])('a rename writes one line anew', (before, after) => {
  expect(rename(before, 'new')).toBe(after);
});

it('a name in another form is written anew with its whole front matter, and what is no skill is left alone', () => {
  for (const text of [
    '---\n{ name: old, description: d }\n---\nb',
    '---\n"name": old\ndescription: d\n---\nb',
    '---\nname: >-\n  old\ndescription: d\n---\nb',
  ])
    expect(read(rename(text, 'new') ?? '')).toEqual(read('---\nname: new\ndescription: d\n---\nb'));
  expect(rename('no front matter', 'new')).toBeUndefined();
});

it('whatever stands beside the name stays, in what it says and in the text', () => {
  const fields = fc.record({
    description: fc.string({ minLength: 1 }),
    'allowed-tools': fc.array(fc.string()),
    metadata: fc.dictionary(fc.string(), fc.string()),
  });
  fc.assert(
    fc.property(fields, fc.string(), fc.boolean(), (others, body, isFirst) => {
      const entries = Object.entries(others).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
      const lines = isFirst ? ['name: old', ...entries] : [...entries, 'name: old'];
      const text = `---\n${lines.join('\n')}\n---\n${body}`;
      const before = read(text);
      fc.pre(!('invalid' in before));
      const after = rename(text, 'new-name');
      expect(read(after ?? '')).toEqual({ ...before, facts: { ...before.facts, name: 'new-name' } });
      expect(after?.endsWith(`---\n${body.replaceAll('\r\n', '\n')}`)).toBe(true);
    }),
    { numRuns: 500 },
  );
});

it('a SKILL.md that lacks nothing keeps its bytes; one without front matter gets some only where its tool takes it so', () => {
  const whole = Buffer.from('---\r\nname: a\r\ndescription: d\r\n---\r\n');
  const from = { dialect: 'claude' as const, folder: 'some/b' };
  expect(adaptSkillFile(whole, from).bytes).toBe(whole);
  const bare = Buffer.from('# Title\n\nSays "it".\n');
  expect(Buffer.from(adaptSkillFile(bare, from).bytes).toString()).toBe(
    '---\nname: "b"\ndescription: "Says \\"it\\"."\n---\n# Title\n\nSays "it".\n',
  );
  expect(adaptSkillFile(bare, { ...from, dialect: 'standard' }).bytes).toBe(bare);
  const broken = Buffer.from('---\nname: [\n---\n');
  expect(adaptSkillFile(broken, from)).toEqual({ bytes: broken, dropped: [] });
});
