export { ARCHIVE_LIMITS, ArchiveRefused, unpackZip } from './archive.js';
export { BlobStore, digestOfBytes, type BlobPart } from './blob-store.js';
export { pathProblem, TREE_LIMITS, treeDigest, treeProblem } from './tree.js';
