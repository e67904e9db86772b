import { unzipSync, type UnzipFileInfo } from 'fflate';
import { ARCHIVE_LIMITS, ArchiveRefused } from './archive-limits.js';
import { unpackTarGz, type Unpacked } from './tar.js';
import { foldedPath, pathProblem } from './tree.js';

/** Unpacks a zip or a tar.gz, told apart by how they begin; see {@link unpackZip} and {@link unpackTarGz}. Throws ArchiveRefused. */
export function unpackArchive(archive: Uint8Array): ReadonlyMap<string, Unpacked> {
  if (archive[0] === 0x1f && archive[1] === 0x8b) return unpackTarGz(archive);
  const executables = executablesOf(archive);
  return new Map([...unpackZip(archive)].map(([path, bytes]) => [path, { bytes, executable: executables.has(path) }]));
}

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
    const folded = foldedPath(file.name);
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
    const files = new Map(Object.entries(unzipSync(archive, { filter })));
    if (files.size !== seen.size) throw new ArchiveRefused('an entry of it has a name that cannot be taken');
    return files;
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
  return [...unixModes(archive)].some(({ mode }) => (mode & TYPE_MASK) === TYPE_LINK);
}

/** Names of entries whose owner may execute them. */
function executablesOf(archive: Uint8Array): ReadonlySet<string> {
  const modes = [...unixModes(archive)].filter(({ mode }) => (mode & 0o100) !== 0);
  return new Set(modes.map(({ name }) => new TextDecoder().decode(name)));
}

/** What the central directory says; bytes of a file may look like one of its headers, and then say too much, never too little. */
function* unixModes(archive: Uint8Array): Generator<{ readonly mode: number; readonly name: Uint8Array }> {
  const view = new DataView(archive.buffer, archive.byteOffset, archive.byteLength);
  for (let at = 0; at + 46 <= archive.byteLength; at++) {
    if (view.getUint32(at, true) !== CENTRAL_HEADER || view.getUint8(at + 5) !== UNIX) continue;
    yield { mode: view.getUint32(at + 38, true) >>> 16, name: archive.subarray(at + 46, at + 46 + view.getUint16(at + 28, true)) };
  }
}
