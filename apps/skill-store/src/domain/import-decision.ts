import { SkillName, type ImportChoice, type ImportFailure } from '@ambit/contracts';

/** What the target has under a name. */
export interface Standing {
  readonly digest: string;
  /** Of a mirrored folder, which decides over this skill. */
  readonly folder: string | null;
}
export type Decision =
  | { readonly kind: 'install'; readonly as: string; readonly outcome: 'installed' | 'renamed' | 'overwritten' }
  | { readonly kind: 'skip'; readonly reason: string }
  | { readonly kind: 'fail'; readonly code: ImportFailure; readonly reason: string };

const NAMES_TRIED = 10_000;
const NAME_LENGTH = 64;

/** What happens to one skill whose source is as it was previewed, given what the target has now. */
export function decideImport(choice: ImportChoice, standing: Standing | undefined, isTaken: (name: string) => boolean): Decision {
  const { name, onConflict, replaces } = choice;
  if (standing === undefined) {
    if (onConflict === 'overwrite' && replaces !== null)
      return { kind: 'fail', code: 'TARGET_CHANGED', reason: `the target has no skill "${name}" any more; preview again` };
    return { kind: 'install', as: name, outcome: 'installed' };
  }
  switch (onConflict) {
    case 'skip':
      return { kind: 'skip', reason: `the target has a skill "${name}"` };
    case 'rename': {
      const as = freeName(name, choice.newName, isTaken);
      return as === undefined
        ? { kind: 'fail', code: 'IMPORT_CONFLICT', reason: `no name for another "${name}" is free` }
        : { kind: 'install', as, outcome: 'renamed' };
    }
    case 'overwrite':
      if (standing.digest === choice.digest) return { kind: 'skip', reason: 'the target has this very version' };
      if (standing.folder !== null)
        return { kind: 'fail', code: 'IMPORT_CONFLICT', reason: `the skills folder decides what "${name}" is; change it there` };
      if (standing.digest !== replaces)
        return { kind: 'fail', code: 'TARGET_CHANGED', reason: `the target's "${name}" is not the one that was previewed; preview again` };
      return { kind: 'install', as: name, outcome: 'overwritten' };
  }
}

/** The wished name where it is free, else the first free one of `<name>-copy`, `<name>-copy-2`, …, cut where it would be too long. */
export function freeName(name: string, wished: string | undefined, isTaken: (name: string) => boolean): string | undefined {
  if (wished !== undefined && SkillName.safeParse(wished).success && !isTaken(wished)) return wished;
  for (let number = 1; number <= NAMES_TRIED; number++) {
    const ending = number === 1 ? '-copy' : `-copy-${number}`;
    const candidate = `${name.slice(0, NAME_LENGTH - ending.length).replace(/-+$/, '')}${ending}`;
    if (!isTaken(candidate)) return candidate;
  }
  return undefined;
}
