/** How deep skills are looked for below a scope's root. */
export const SCAN_DEPTH = 10;
/** Below the root, one folder an agent. */
export const SCOPES = '.agent-scopes';

const OF_TOOLS: ReadonlySet<string> = new Set(['.git', '.DS_Store', 'Thumbs.db', '__MACOSX', 'node_modules']);

/** Whether skills are looked for in a folder of this name: staging, backup and hidden folders are never listed. */
export function isScanned(name: string): boolean {
  return !name.startsWith('.') && !name.includes('.backup-') && !OF_TOOLS.has(name);
}

/** Whether a file or folder of this name belongs to the skill it lies in; what tools leave behind does not. */
export function isSkillPart(name: string): boolean {
  return !OF_TOOLS.has(name);
}

/** In code units, as paths are ordered everywhere. */
export function byName(left: { readonly name: string }, right: { readonly name: string }): number {
  return left.name < right.name ? -1 : left.name > right.name ? 1 : 0;
}

/** Paths in order: folder by folder, each in code units; what lies in a folder stands before its next neighbour. */
export function inPathOrder(left: string, right: string): number {
  const [one, other] = [left.split('/'), right.split('/')];
  for (const [index, name] of one.entries()) {
    const beside = other[index];
    if (beside === undefined) return 1;
    if (name !== beside) return name < beside ? -1 : 1;
  }
  return one.length - other.length;
}

export interface Refusal {
  readonly folder: string;
  /** What its SKILL.md calls it, where that can be read. */
  readonly claims: string | null;
}

/**
 * Names under which skills that cannot be used are listed: what each says of itself, else its folder's, made legal. No such name is
 * that of a usable skill or of another; `digest` gives 64 hexadecimal digits of a text.
 */
export function namesOfRefused(
  refused: readonly Refusal[],
  taken: ReadonlySet<string>,
  digest: (text: string) => string,
): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const used = new Set(taken);
  for (const { folder, claims } of refused) {
    const own = claims ?? legal(folder.slice(folder.lastIndexOf('/') + 1));
    const name = used.has(own) ? `${own.slice(0, 51).replace(/-$/, '')}-${digest(folder).slice(0, 12)}` : own;
    used.add(name);
    names.set(folder, name);
  }
  return names;
}

function legal(text: string): string {
  const name = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 64)
    .replaceAll(/^-|-$/g, '');
  return name === '' ? 'unnamed' : name;
}
