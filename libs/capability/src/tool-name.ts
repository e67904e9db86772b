import { digestOf } from './canonical.js';
import { RESERVED_NAMES, RESERVED_PREFIXES } from './reserved.js';

/** Longest tool name that every model provider takes. */
export const TOOL_NAME_MAX = 64;
const PREFIX = 'mcp__';
const HASH_DIGITS = 12;
const SLUG_KEPT = 24;
const LOOKS_HASHED = new RegExp(`_[0-9a-f]{${HASH_DIGITS}}$`);

/**
 * The stable name of a server's tool or prompt: `mcp__<serverSlug>__<tool>`, at most 64 characters of `[A-Za-z0-9_-]`. Two different pairs never get
 * one name, and a name depends on nothing but its pair: what had to be cut or replaced is kept apart by a hash, and a tool that is itself named as if
 * it ended in such a hash gets one too. The slug stands whole up to 24 characters, so that `mcp__<slug>__*` finds every tool of such a server.
 */
export function qualifiedToolName(serverSlug: string, tool: string): string {
  const legal = `${PREFIX}${serverSlug}__${tool}`;
  if (legal.length <= TOOL_NAME_MAX && /^[A-Za-z0-9_-]+$/.test(tool) && !LOOKS_HASHED.test(tool)) return legal;
  const slug = serverSlug.slice(0, SLUG_KEPT);
  const room = TOOL_NAME_MAX - PREFIX.length - slug.length - '__'.length - 1 - HASH_DIGITS;
  const kept = tool.replace(/[^A-Za-z0-9_-]/gu, '_').slice(0, room);
  return `${PREFIX}${slug}__${kept}_${digestOf([serverSlug, tool]).slice(0, HASH_DIGITS)}`;
}

/** What two names that a reader could take for each other have in common: NFKC, full case folding, no invisible characters, no blanks around. */
export function foldName(name: string): string {
  // What is folded already stays: most names are.
  if (/^[a-z0-9_-]*$/.test(name)) return name;
  const folded = name.normalize('NFKC').toUpperCase().toLowerCase().normalize('NFKC');
  return folded.replace(/\p{Default_Ignorable_Code_Point}/gu, '').trim();
}

/** The reserved name that this name is, or could be taken for; null where it is free. */
export function reservedNameOf(name: string): string | null {
  const folded = foldName(name);
  if (RESERVED_NAMES.has(folded)) return folded;
  const prefix = RESERVED_PREFIXES.find((candidate) => folded.startsWith(candidate));
  return prefix === undefined ? null : `${prefix}*`;
}

/** A name that a server's tool would have elsewhere and that belongs to the platform. */
export interface RefusedName {
  readonly tool: string;
  readonly name: string;
  /** The built-in name, or family of names, that it is or could be taken for. */
  readonly reserved: string;
  readonly shownAs: string;
  readonly reason: string;
}

/**
 * The names that a server's tool claims, by itself or joined to its server's, and may not have: it is shown under its qualified name and under no
 * other, whether or not the built-in of that name is there.
 */
export function refusedNames(serverSlug: string, tool: string): RefusedName[] {
  return [tool, `${serverSlug}_${tool}`].flatMap((name) => {
    const reserved = reservedNameOf(name);
    if (reserved === null) return [];
    const shownAs = qualifiedToolName(serverSlug, tool);
    return [{ tool, name, reserved, shownAs, reason: `${reserved} is a built-in name; the tool is shown as ${shownAs}` }];
  });
}

/** Tells whether a name looks like a server's tool, which nothing but a server's tool may be called. */
export function looksQualified(name: string): boolean {
  return foldName(name).startsWith(PREFIX);
}
