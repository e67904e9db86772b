import type { SourceFormat } from '@ambit/contracts';
import type { Draft } from './manifest.js';
import type { PackageFiles } from './package-files.js';

/** How packages of one format are known and read. */
export interface PackageFormat {
  readonly name: SourceFormat;
  /** The file that says what a package is. */
  readonly mark: string;
  readonly isOne: (files: PackageFiles) => boolean;
  /** Throws `PackageRefused`; what costs only a part of a package is said in its warnings. */
  readonly read: (files: PackageFiles) => Draft;
}

/** Folders one level below a folder that hold a SKILL.md. */
export function skillFoldersBelow(paths: readonly string[], folder: string): string[] {
  const start = `${folder}/`;
  return paths.flatMap((path) => {
    const parts = path.startsWith(start) ? path.slice(start.length).split('/') : [];
    return parts.length === 2 && parts[1] === 'SKILL.md' && parts[0] !== undefined ? [`${start}${parts[0]}`] : [];
  });
}
