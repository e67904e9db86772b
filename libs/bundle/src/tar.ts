import { gunzipSync } from 'node:zlib';
import { ARCHIVE_LIMITS, ArchiveRefused } from './archive-limits.js';
import { foldedPath, pathProblem } from './tree.js';

export interface Unpacked {
  readonly bytes: Uint8Array;
  readonly executable: boolean;
}

const BLOCK = 512;
/** Headers, names of any length and padding of as many entries as are taken. */
const OVERHEAD = ARCHIVE_LIMITS.entries * 8 * BLOCK;

/** Unpacks a tar.gz in memory: no path leaves it, no link, no device, no bomb. Folders are left out. */
export function unpackTarGz(archive: Uint8Array): ReadonlyMap<string, Unpacked> {
  if (archive.byteLength > ARCHIVE_LIMITS.archive)
    throw new ArchiveRefused(`the archive has ${archive.byteLength} bytes; at most ${ARCHIVE_LIMITS.archive} are taken`);
  return readTar(gunzip(archive));
}

function gunzip(archive: Uint8Array): Uint8Array {
  const most = Math.min(
    ARCHIVE_LIMITS.total + OVERHEAD,
    Math.max(ARCHIVE_LIMITS.ratioFrom + OVERHEAD, archive.byteLength * ARCHIVE_LIMITS.ratio),
  );
  try {
    return gunzipSync(archive, { maxOutputLength: most });
  } catch (error) {
    if (typeof error === 'object' && error !== null && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE')
      throw new ArchiveRefused(`unpacked it would have more than ${most} bytes`);
    throw new ArchiveRefused('it is not a readable tar.gz archive');
  }
}

function readTar(tar: Uint8Array): ReadonlyMap<string, Unpacked> {
  const files = new Map<string, Unpacked>();
  const seen = new Set<string>();
  let entries = 0;
  let total = 0;
  let longName: string | undefined;
  for (let at = 0; at + BLOCK <= tar.byteLength;) {
    const header = tar.subarray(at, at + BLOCK);
    if (header.every((byte) => byte === 0)) break;
    const entry = readHeader(header);
    const data = tar.subarray(at + BLOCK, at + BLOCK + entry.size);
    if (data.byteLength < entry.size) throw new ArchiveRefused('it ends in the middle of a file');
    at += BLOCK + Math.ceil(entry.size / BLOCK) * BLOCK;
    entries += 1;
    // A name of any length is an entry of its own before the one that it names.
    if (entries > 2 * ARCHIVE_LIMITS.entries) throw new ArchiveRefused(`more than ${ARCHIVE_LIMITS.entries} entries`);
    if (entry.type === 'L') longName = textOf(data);
    else if (entry.type === 'x') longName = paxPath(data) ?? longName;
    else if (entry.type !== 'g') {
      const name = (longName ?? entry.name).replace(/^(\.\/)+/, '');
      longName = undefined;
      if (entry.type === '5' || name === '' || name.endsWith('/')) continue;
      if (entry.type !== '0' && entry.type !== '\0' && entry.type !== '7')
        throw new ArchiveRefused(`"${name.slice(0, 200)}" is a link or no plain file; links are not taken`);
      total += entry.size;
      take(name, entry.size);
      files.set(name, { bytes: data, executable: (entry.mode & 0o100) !== 0 });
    }
  }
  if (entries === 0) throw new ArchiveRefused('it is not a readable tar.gz archive');
  return files;

  function take(name: string, size: number): void {
    const problem = pathProblem(name);
    if (problem !== undefined) throw new ArchiveRefused(`"${name.slice(0, 200)}": ${problem}`);
    if (size > ARCHIVE_LIMITS.entry) throw new ArchiveRefused(`"${name.slice(0, 200)}" has ${size} bytes`);
    if (total > ARCHIVE_LIMITS.total) throw new ArchiveRefused(`unpacked it would have more than ${ARCHIVE_LIMITS.total} bytes`);
    if (files.size >= ARCHIVE_LIMITS.entries) throw new ArchiveRefused(`more than ${ARCHIVE_LIMITS.entries} entries`);
    const folded = foldedPath(name);
    if (seen.has(folded)) throw new ArchiveRefused(`"${name.slice(0, 200)}" stands twice, at least for some file systems`);
    seen.add(folded);
  }
}

function readHeader(header: Uint8Array): { readonly name: string; readonly mode: number; readonly size: number; readonly type: string } {
  let sum = 0;
  for (const [index, byte] of header.entries()) sum += index >= 148 && index < 156 ? 32 : byte;
  if (sum !== octal(header.subarray(148, 156))) throw new ArchiveRefused('it is not a readable tar.gz archive');
  const prefix = textOf(header.subarray(257, 262)) === 'ustar' && header[262] === 0 ? textOf(header.subarray(345, 500)) : '';
  const name = textOf(header.subarray(0, 100));
  return {
    name: prefix === '' ? name : `${prefix}/${name}`,
    mode: octal(header.subarray(100, 108)),
    size: octal(header.subarray(124, 136)),
    type: String.fromCharCode(header[156] ?? 0),
  };
}

/** A number in octal digits; the binary form is for sizes far above what is taken. */
function octal(field: Uint8Array): number {
  const digits = textOf(field).trim();
  if (!/^[0-7]*$/.test(digits)) throw new ArchiveRefused('a header of it holds a number that is not taken');
  return digits === '' ? 0 : Number.parseInt(digits, 8);
}

/** The `path` among the records `<length> <key>=<value>\n` of an extended header. */
function paxPath(data: Uint8Array): string | undefined {
  let found: string | undefined;
  for (let at = 0; at < data.byteLength;) {
    // Values other than a path may be bytes of any kind.
    const [, digits = '', key = ''] = /^(\d{1,9}) ([^=]{1,200})=/.exec(latin1(data.subarray(at, at + 220))) ?? [];
    const length = Number(digits);
    const from = at + digits.length + key.length + 2;
    if (digits === '' || from > at + length || at + length > data.byteLength)
      throw new ArchiveRefused('an extended header of it is broken');
    if (key === 'path') found = decode(data.subarray(from, at + length - 1));
    // A size here would be read by others and not by us: what is unpacked would differ from what was looked at.
    if (key === 'size') throw new ArchiveRefused('an extended header of it says another size');
    at += length;
  }
  return found;
}

function textOf(field: Uint8Array): string {
  const end = field.indexOf(0);
  return decode(end < 0 ? field : field.subarray(0, end));
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new ArchiveRefused('a name in it is not UTF-8');
  }
}
