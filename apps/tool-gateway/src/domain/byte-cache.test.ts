import { expect, it } from '@jest/globals';
import { ByteCache } from './byte-cache.js';

const of = (bytes: number) => ({ value: 'x'.repeat(bytes), bytes });

it('keeps what was used last, as far as there is room', () => {
  const cache = new ByteCache<string>(10);
  cache.set('one', of(4), 1);
  cache.set('two', of(4), 2);
  expect(cache.get('one', 3)).toBe('xxxx');
  cache.set('three', of(4), 4);
  expect([cache.get('one', 5), cache.get('two', 5), cache.get('three', 5)]).toEqual(['xxxx', undefined, 'xxxx']);
  cache.set('one', of(6), 6);
  expect(cache.bytes).toBe(10);
  cache.set('large', of(11), 7);
  expect([cache.get('large', 8), cache.bytes]).toEqual([undefined, 10]);
});

it('forgets what nobody asked for', () => {
  const cache = new ByteCache<string>(10);
  cache.set('one', of(4), 1);
  cache.set('two', of(4), 1);
  expect(cache.get('two', 3)).toBe('xxxx');
  cache.dropUnusedSince(2);
  expect([cache.get('one', 4), cache.get('two', 4), cache.bytes]).toEqual([undefined, 'xxxx', 4]);
  cache.delete('two');
  cache.delete('two');
  expect(cache.bytes).toBe(0);
});
