export { readFolder, readPlainFile, type FolderFile } from './folder.js';
export { manifestJsonSchema } from './json-schema.js';
export { loadManifest, uploadManifest, type LoadOptions, type Manifest, type ManifestBlob } from './load.js';
export { ManifestInvalid } from './yaml-file.js';
