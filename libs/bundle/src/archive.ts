import { unzipSync, type UnzipFileInfo } from 'fflate';
import { pathProblem } from './tree.js';

/** Bounds of an archive before a byte of it is unpacked; sizes in bytes. */
export const ARCHIVE_LIMITS = {
  archive: 200 * 1024 * 1024,
  entries: 4_096,
  entry: 64 * 1024 * 1024,
  total: 256 * 1024 * 1024,
  ratio: 200,
  ratioFrom: 1024 * 1024,
} as const;

export class ArchiveRefused extends Error {}

/** Unpacks a zip in memory: no path leaves it, no link, no bomb. Directory entries are left out. */
export function unpackZip(archive: Uint8Array): ReadonlyMap<string, Uint8Array> {
  if (archive.byteLength > ARCHIVE_LIMITS.archive)
    throw new ArchiveRefused(`the archive has ${archive.byteLength} bytes; at most ${ARCHIVE_LIMITS.archive} are taken`);
  let entries = 0;
  let total = 0;
  const seen = new Set<string>();
  const filter = (file: UnzipFileInfo): boolean => {
    entries += 1;
    if (entries > ARCHIVE_LIMITS.entries) throw new ArchiveRefused(`more than ${ARCHIVE_LIMITS.entries} entries`);
    if (file.name.endsWith('/')) return false;
    const problem = pathProblem(file.name);
    if (problem !== undefined) throw new ArchiveRefused(`"${file.name.slice(0, 200)}": ${problem}`);
    const folded = file.name.normalize('NFC').toLowerCase();
    if (seen.has(folded)) throw new ArchiveRefused(`"${file.name}" stands twice, at least for some file systems`);
    seen.add(folded);
    total += file.originalSize;
    if (file.originalSize > ARCHIVE_LIMITS.entry) throw new ArchiveRefused(`"${file.name}" would have ${file.originalSize} bytes`);
    if (total > ARCHIVE_LIMITS.total) throw new ArchiveRefused(`unpacked it would have more than ${ARCHIVE_LIMITS.total} bytes`);
    if (file.originalSize > ARCHIVE_LIMITS.ratioFrom && file.originalSize > file.size * ARCHIVE_LIMITS.ratio)
      throw new ArchiveRefused(`"${file.name}" is packed more than ${ARCHIVE_LIMITS.ratio} times`);
    return true;
  };
  if (hasLinks(archive)) throw new ArchiveRefused('it holds a symbolic link; links are not taken');
  try {
    return new Map(Object.entries(unzipSync(archive, { filter })));
  } catch (error) {
    if (error instanceof ArchiveRefused) throw error;
    throw new ArchiveRefused('it is not a readable zip archive');
  }
}

const CENTRAL_HEADER = 0x02014b50;
const UNIX = 3;
const TYPE_MASK = 0o170000;
const TYPE_LINK = 0o120000;

/** fflate does not tell an entry's Unix mode, where a link shows; the central directory does. */
function hasLinks(archive: Uint8Array): boolean {
  const view = new DataView(archive.buffer, archive.byteOffset, archive.byteLength);
  for (let at = 0; at + 46 <= archive.byteLength; at++) {
    if (view.getUint32(at, true) !== CENTRAL_HEADER) continue;
    const madeBy = view.getUint8(at + 5);
    const mode = view.getUint32(at + 38, true) >>> 16;
    if (madeBy === UNIX && (mode & TYPE_MASK) === TYPE_LINK) return true;
  }
  return false;
}
