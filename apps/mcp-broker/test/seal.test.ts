import { describe, expect, it } from '@jest/globals';
import { Seal } from '../src/seal.js';

describe('a sealed value', () => {
  const key = 'ab'.repeat(32);
  it('opens under its key and name alone, and never looks the same twice', () => {
    const seal = new Seal(key);
    const envelope = seal.close('väl', 'default/a');
    expect(seal.open(envelope, 'default/a')).toBe('väl');
    expect(() => seal.open(envelope, 'default/b')).toThrow();
    expect(() => new Seal('cd'.repeat(32)).open(envelope, 'default/a')).toThrow();
    expect(seal.close('väl', 'default/a').equals(envelope)).toBe(false);
    const bent = Buffer.from(envelope);
    bent[bent.length - 1] = (bent.at(-1) ?? 0) ^ 1;
    expect(() => seal.open(bent, 'default/a')).toThrow();
  });
  it('takes keys of 32 bytes only', () => {
    expect(() => new Seal('short')).toThrow('32 bytes');
    expect(new Seal(Buffer.from(key, 'hex').toString('base64')).keyId).toBe(new Seal(key).keyId);
  });
});
