/** Bounds of an archive before a byte of it is believed; sizes in bytes. */
export const ARCHIVE_LIMITS = {
  archive: 200 * 1024 * 1024,
  entries: 4_096,
  entry: 64 * 1024 * 1024,
  total: 256 * 1024 * 1024,
  ratio: 200,
  ratioFrom: 1024 * 1024,
} as const;

/** An archive that is not taken; the message says why. */
export class ArchiveRefused extends Error {}
