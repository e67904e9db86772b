export { unpackArchive, unpackZip } from './archive.js';
export { ARCHIVE_LIMITS, ArchiveRefused } from './archive-limits.js';
export { BlobStore, digestOfBytes, type BlobPart } from './blob-store.js';
export type { Unpacked } from './tar.js';
export { pathProblem, pathsProblem, PACKAGE_LIMITS, TREE_LIMITS, treeDigest, treeProblem } from './tree.js';
