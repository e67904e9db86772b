import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { BadArguments, parseArguments } from '../src/arguments.js';
import { canonicalJson } from '../src/canonical.js';
import { argumentsHash, instanceId, operationId, resumeRunId } from '../src/operation-id.js';
import { check } from './property.js';

const safe = fc
  .dictionary(
    fc.string({ unit: 'grapheme' }).filter((key) => key !== '__proto__'),
    fc.jsonValue({ maxDepth: 4 }),
  )
  .filter((value) => !JSON.stringify(value).includes('__proto__'));

describe('arguments', () => {
  it('are what JSON.parse reads, wherever they are legal', () => {
    check(
      fc.property(safe, fc.constantFrom(undefined, 2), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        expect(parseArguments(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  it('are refused in every other case, with a reason and never a crash', () => {
    check(
      fc.property(
        fc.oneof(fc.string(), fc.json(), fc.string({ unit: fc.constantFrom('{', '}', '[', ']', '"', '\\', ',', ':', '1', 'a', 'u', '-') })),
        (text) => {
          try {
            expect(Array.isArray(parseArguments(text))).toBe(false);
          } catch (error) {
            expect(error).toBeInstanceOf(BadArguments);
          }
        },
      ),
    );
  });

  it('find a repeated key wherever it stands and however it is spelled', () => {
    check(
      fc.property(
        safe,
        fc.string().filter((key) => key !== '__proto__'),
        (value, key) => {
          const body = JSON.stringify(value).slice(1, -1);
          const escaped = `"${[...key].map((character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')}"`;
          const twice = `{${JSON.stringify(key)}:1,${escaped}:2${body === '' ? '' : `,${body}`}}`;
          expect(() => parseArguments(twice)).toThrow(BadArguments);
          expect(() => parseArguments(`{"outer":[${twice}]}`)).toThrow(BadArguments);
        },
      ),
    );
  });

  const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
  const wide = (keys: number) => `{${Array.from({ length: keys }, (_, index) => `"k${index}":0`).join(',')}}`;
  const sized = (bytes: number) => `{"a":"${'x'.repeat(bytes - 8)}"}`;

  it.each([
    ['malformed', '{"a":1'],
    ['empty', ''],
    ['blank', '  '],
    ['an array', '[]'],
    ['a string', '"{}"'],
    ['null', 'null'],
    ['a number', '1'],
    ['two objects', '{}{}'],
    ['a trailing comma', '{"a":1,}'],
    ['a comment', '{/**/}'],
    ['single quotes', "{'a':1}"],
    ['10 MiB', `{"a":"${'x'.repeat(10 * 1024 * 1024)}"}`],
    ['one byte over', sized(512 * 1024 + 1)],
    ['65 levels', nested(65)],
    ['a deep wall of brackets', `{"a":${'['.repeat(200_000)}${']'.repeat(200_000)}}`],
    ['10,001 keys', wide(10_001)],
    ['__proto__', '{"__proto__":{"admin":true}}'],
    ['__proto__, escaped and nested', '{"a":[{"\\u005f_proto__":1}]}'],
    ['an integer of 64 bits', '{"id":1234567890123456789}'],
    ['a number beyond all', '{"n":1e999}'],
    ['half a surrogate pair', '{"a":"\\ud800"}'],
    ['a byte order mark', '\ufeff{}'],
  ])('refuse %s', (_name, text) => {
    expect(() => parseArguments(text)).toThrow(BadArguments);
  });

  it('take what stands exactly at each bound', () => {
    expect(Object.keys(parseArguments(wide(10_000)))).toHaveLength(10_000);
    expect(parseArguments(nested(64))).toHaveProperty('a');
    expect(parseArguments(sized(512 * 1024))).toHaveProperty('a');
    expect(parseArguments('{"n":9007199254740991,"big":1e21,"part":0.1}')).toEqual({ n: 9007199254740991, big: 1e21, part: 0.1 });
  });
});

describe('ids', () => {
  const id = fc.string({ minLength: 1 });
  it('differ wherever a part differs, also where parts run into each other', () => {
    const call = fc.tuple(id, fc.nat(), id);
    check(
      fc.property(call, call, (left, right) => {
        expect(operationId(...left) === operationId(...right)).toBe(JSON.stringify(left) === JSON.stringify(right));
        expect(operationId(...left)).toMatch(/^[0-9a-f]{64}$/);
      }),
    );
    expect(operationId('a', 1, '1b')).not.toBe(operationId('a', 11, 'b'));
  });

  it('keep instances of different generations, scopes and subjects apart', () => {
    const identity = fc.record({ serverId: id, configGeneration: fc.nat(), scope: id, credentialSubject: id });
    check(
      fc.property(identity, identity, (left, right) => {
        expect(instanceId(left) === instanceId(right)).toBe(canonicalJson(left) === canonicalJson(right));
      }),
    );
  });

  it('hash arguments by their meaning, from text and object alike', () => {
    check(
      fc.property(safe, (value) => {
        expect(argumentsHash(JSON.stringify(value))).toBe(argumentsHash(value));
      }),
    );
    expect(argumentsHash('{"b":1.0,"a":2}')).toBe(argumentsHash('{ "a":2, "b":1 }'));
    expect(argumentsHash('{"a":1}')).not.toBe(argumentsHash('{"a":"1"}'));
  });

  it('make one resume run of one suspended run, a UUID of version 8', () => {
    check(
      fc.property(fc.uuid(), (run) => {
        expect(resumeRunId(run)).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
        expect(resumeRunId(run)).toBe(resumeRunId(run));
        expect(resumeRunId(run)).not.toBe(run);
      }),
    );
    expect(resumeRunId('01890a5d-ac96-774b-bcce-b302099a8057')).toBe('87bd6ad8-b1f0-85da-bd3f-23099976a7ef');
  });
});
