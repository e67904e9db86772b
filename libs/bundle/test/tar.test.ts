import { gzipSync } from 'node:zlib';
import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { ArchiveRefused, pathProblem, unpackArchive } from '../src/index.js';

function block(path: string, bytes: Buffer, { type = '0', mode = '0000644' } = {}): Buffer {
  const header = Buffer.alloc(512);
  header.write(path, 0, 100);
  header.write(mode, 100);
  header.write(bytes.byteLength.toString(8).padStart(11, '0'), 124);
  header.write(' '.repeat(8), 148);
  header.write(type, 156);
  header.write('ustar\u000000', 257);
  header.write(
    `${header
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\u0000 `,
    148,
  );
  return Buffer.concat([header, bytes, Buffer.alloc((512 - (bytes.byteLength % 512)) % 512)]);
}
const tar = (...blocks: readonly Buffer[]): Buffer => Buffer.concat([...blocks, Buffer.alloc(1_024)]);
const unpacked = (bytes: Buffer) =>
  [...unpackArchive(gzipSync(bytes))].map(([path, { bytes: data }]) => [path, Buffer.from(data).toString()]);
/** A record of an extended header: its length counts itself. */
const pax = (key: string, value: string): Buffer => {
  const rest = Buffer.from(` ${key}=${value}\n`);
  const digits = String(rest.byteLength + String(rest.byteLength + 3).length);
  return Buffer.concat([Buffer.from(digits), rest]);
};

it('names of any length come as entries of their own, in both ways that are in use', () => {
  const long = `${'folder/'.repeat(20)}name.md`;
  expect(unpacked(tar(block('././@LongLink', Buffer.from(`${long}\0`), { type: 'L' }), block('cut', Buffer.from('1'))))).toEqual([
    [long, '1'],
  ]);
  const records = Buffer.concat([pax('LIBARCHIVE.xattr', '\u00ff'), pax('path', long)]);
  expect(
    unpacked(tar(block('PaxHeader', records, { type: 'x' }), block('cut', Buffer.from('2')), block('next', Buffer.from('3')))),
  ).toEqual([
    [long, '2'],
    ['next', '3'],
  ]);
  expect(
    unpacked(
      tar(
        block('pax_global_header', pax('comment', 'abc'), { type: 'g' }),
        block('./a/', Buffer.alloc(0), { type: '5' }),
        block('./a/b', Buffer.from('4')),
      ),
    ),
  ).toEqual([['a/b', '4']]);
});

it('a long name leads out no more than a short one, and a size that only some would read is refused', () => {
  const out = Buffer.from('../../etc/cron.d/x');
  expect(() => unpacked(tar(block('n', out, { type: 'L' }), block('ok', out)))).toThrow(/stay inside/);
  expect(() => unpacked(tar(block('n', pax('path', '/etc/x'), { type: 'x' }), block('ok', out)))).toThrow(/stay inside/);
  expect(() => unpacked(tar(block('n', pax('size', '1'), { type: 'x' }), block('ok', out)))).toThrow(/another size/);
});

it('whatever bytes it has, an archive is unpacked to paths that may be taken, or refused', () => {
  const whole = tar(
    block('a/b.md', Buffer.from('x'.repeat(700))),
    block('c', Buffer.from('y')),
    block('n', Buffer.from('d/e'), { type: 'L' }),
    block('cut', Buffer.from('z')),
  );
  const edits = fc.array(fc.tuple(fc.nat(whole.byteLength - 1), fc.oneof(fc.nat(255), fc.constantFrom(0, 47, 46, 49))), {
    minLength: 1,
    maxLength: 6,
  });
  fc.assert(
    fc.property(edits, fc.boolean(), (changes, fixesSums) => {
      const bytes = Buffer.from(whole);
      for (const [at, byte] of changes) bytes[at] = byte;
      // Most changes of a header are seen by its sum; a hostile hand would put that right.
      if (fixesSums)
        for (const at of [0, 1_536]) {
          bytes.write(' '.repeat(8), at + 148);
          const sum = bytes.subarray(at, at + 512).reduce((total, byte) => total + byte, 0);
          bytes.write(`${sum.toString(8).padStart(6, '0')}\u0000 `, at + 148);
        }
      try {
        for (const path of unpackArchive(gzipSync(bytes)).keys()) expect(pathProblem(path)).toBeUndefined();
      } catch (error) {
        if (!(error instanceof ArchiveRefused)) throw error;
      }
    }),
    { numRuns: 1_000 },
  );
});
