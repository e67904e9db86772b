import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { strictJson } from './strict-json.js';

it('reads what JSON.parse reads where no key stands twice', () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      const read = strictJson(text);
      const plain = /\\u(?:0000|d[89a-f])/i.test(text) ? expect.anything() : { value: JSON.parse(text) };
      expect(read).toEqual(plain);
    }),
  );
  fc.assert(
    fc.property(fc.string(), (text) => {
      const read = strictJson(text);
      expect('value' in read || read.problem !== '').toBe(true);
    }),
  );
});

it('refuses an object with a key that stands twice, however deep and however written', () => {
  const cases = ['{"a":1,"a":2}', '[{"b":{"a":1,"c":[],"\\u0061":{}}}]', '{"x":{"a":1},"y":1,"x":2}', '{"\\"":1,"\\"":2}'];
  for (const text of cases) expect(strictJson(text)).toMatchObject({ isTwice: true });
  for (const text of ['{"a":{"a":1}}', '[{"a":1},{"a":1}]', '{"a":"a","b":"{\\"b\\":1,\\"b\\":2}"}'])
    expect(strictJson(text)).toHaveProperty('value');
});

it('refuses texts that a database cannot hold', () => {
  for (const text of ['"\\u0000"', '{"\\ud800":1}', '["\\udc00\\ud800"]']) expect(strictJson(text)).toMatchObject({ isTwice: false });
  expect(strictJson('"\\ud83d\\ude00"')).toEqual({ value: '\u{1F600}' });
});
