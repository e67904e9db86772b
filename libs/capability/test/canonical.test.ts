import { describe, expect, it } from '@jest/globals';
import * as reference_ from 'canonicalize';
import fc from 'fast-check';
import { byCodeUnit, canonicalJson, fingerprint, NotCanonical } from '../src/canonical.js';
import { sha256Hex } from '../src/sha256.js';
import { check } from './property.js';

const json = fc.jsonValue({ maxDepth: 5, noUnicodeString: false });

function shuffled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffled);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, entry]) => [key, shuffled(entry)]),
  );
}
// The package's types say an ES module, and it is CommonJS: its default is the function itself.
const reference: (value: unknown) => string = Object.assign(reference_.default);
const hasProto = (text: string) => text.includes('__proto__');

describe('canonical JSON', () => {
  it('is the same for equal values in any key order', () => {
    check(
      fc.property(json, (value) => {
        fc.pre(!hasProto(JSON.stringify(value)));
        expect(canonicalJson(shuffled(value))).toBe(canonicalJson(value));
      }),
    );
  });

  it('parses back to the same value, and is then its own canonical form', () => {
    check(
      fc.property(json, (value) => {
        fc.pre(!hasProto(JSON.stringify(value)));
        const text = canonicalJson(value);
        expect(canonicalJson(JSON.parse(text))).toBe(text);
        expect(JSON.stringify(JSON.parse(text)).length).toBe(text.length);
      }),
    );
  });

  it('is what another implementation writes, also for keys that look like numbers', () => {
    const keys = fc
      .oneof(fc.string({ unit: 'grapheme' }), fc.nat(200).map(String), fc.constantFrom('01', '-1', '4294967295', '!'))
      .filter((key) => key !== '__proto__');
    const { value: tree } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom(null, true, 0, -0, 1e21, 'é"\\'),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        fc.array(tie('value'), { maxLength: 4 }),
        fc.dictionary(keys, tie('value'), { maxKeys: 6 }),
      ),
    }));
    check(
      fc.property(tree, (value) => {
        const copy = structuredClone(value);
        expect(canonicalJson(value)).toBe(reference(value));
        expect(value).toEqual(copy);
      }),
      2_000,
    );
  });

  it('spells the examples of RFC 8785 as it does', () => {
    expect(
      canonicalJson({
        numbers: [333333333.33333329, 1e30, 4.5, 2e-3, 0.000000000000000000000000001],
        string: '€$\u000f\nA\'B"\\\\"/',
        literals: [null, true, false],
      }),
    ).toBe('{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}');
    expect(canonicalJson({ '\u20ac': 1, '\r': 2, '\ufb33': 3, '1': 4, '\ud83d\ude00': 5, '\u0080': 6, '\u00f6': 7 })).toBe(
      '{"\\r":2,"1":4,"\u0080":6,"\u00f6":7,"\u20ac":1,"\ud83d\ude00":5,"\ufb33":3}',
    );
    expect(canonicalJson([-0, 1.0])).toBe('[0,1]');
  });

  it('orders by code unit, as keys are ordered', () => {
    check(
      fc.property(fc.uniqueArray(fc.string({ unit: 'binary' })), (names) => {
        fc.pre(!names.includes('__proto__'));
        const record = Object.fromEntries(names.map((name) => [name, 0]));
        expect([...names].sort(byCodeUnit)).toEqual(
          [...canonicalJson(record).matchAll(/("(?:[^"\\]|\\.)*"):0/g)].map(([, key]) => JSON.parse(key ?? '')),
        );
      }),
    );
  });

  it.each([
    ['undefined', [undefined]],
    ['a function', { f: () => 1 }],
    ['a date', new Date(0)],
    ['a map', new Map()],
    ['not-a-number', Number.NaN],
    ['infinity', [Number.POSITIVE_INFINITY]],
    ['a big integer', 1n],
    ['half a surrogate pair', { text: 'a\ud800b' }],
    ['half a surrogate pair in a key', { 'a\udc00': 1 }],
    ['the key __proto__', JSON.parse('{"__proto__":{}}')],
    ['its own toJSON', { toJSON: () => 'x' }],
  ])('refuses %s', (_name, value) => {
    expect(() => canonicalJson(value)).toThrow(NotCanonical);
  });

  it('leaves out properties that are undefined', () => {
    expect(canonicalJson({ a: undefined, b: 1 })).toBe('{"b":1}');
  });

  it('holds its bounds at the edge', () => {
    const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)]);
    expect(canonicalJson(nested(64))).toHaveLength(129);
    expect(() => canonicalJson(nested(65))).toThrow(/deeper than 64/);
    const wide = (keys: number) => Object.fromEntries(Array.from({ length: keys }, (_, index) => [`k${index}`, 0]));
    expect(canonicalJson(wide(10_000))).toContain('k9999');
    expect(() => canonicalJson(wide(10_001))).toThrow(/more than 10000 keys/);
    expect(canonicalJson('a'.repeat(1024 * 1024 - 2))).toHaveLength(1024 * 1024);
    expect(() => canonicalJson('a'.repeat(1024 * 1024 - 1))).toThrow(/larger than/);
    expect(() => canonicalJson('é'.repeat(600_000))).toThrow(/larger than/);
    const circle: unknown[] = [];
    circle.push(circle);
    expect(() => canonicalJson(circle)).toThrow(NotCanonical);
  });

  it('names the place of what was wrong', () => {
    expect(() => canonicalJson({ a: [{ b: Number.NaN }] })).toThrow(/at a\.0\.b/);
  });

  it('fingerprints a record by its canonical UTF-8 bytes', () => {
    expect(sha256Hex('')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
    expect(fingerprint({ b: 'ö', a: 1 })).toBe(sha256Hex(new TextEncoder().encode('{"a":1,"b":"ö"}')));
  });
});
