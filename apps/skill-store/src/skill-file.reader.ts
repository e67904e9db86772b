import { parseDocument } from 'yaml';
import { splitFrontmatter } from '@ambit/capability';
import { judgeSkill, type SkillVerdict } from './domain/skill-file.js';

/** A SKILL.md over this many bytes is refused. */
export const SKILL_FILE_BYTES = 5 * 1024 * 1024;
/** Of a frontmatter: a few lines of it are usual, and more than this would keep everybody else waiting while it is parsed. */
const FRONTMATTER_LENGTH = 64 * 1024;

/** Reads a SKILL.md: no anchors or aliases, no repeated keys; a value with an unquoted colon is tried again in quotes. */
export function readSkillFile(bytes: Uint8Array, folder: string | null): SkillVerdict {
  const read = readFrontmatter(bytes);
  return 'invalid' in read ? read : judgeSkill(read.fields, folder);
}

/** The fields of a SKILL.md as they are written there, unjudged. */
export function readFrontmatter(bytes: Uint8Array): { readonly fields: unknown } | { readonly invalid: string } {
  if (bytes.byteLength > SKILL_FILE_BYTES)
    return { invalid: `SKILL.md has ${bytes.byteLength} bytes; at most ${SKILL_FILE_BYTES} are taken` };
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return { invalid: 'SKILL.md must be UTF-8 text' };
  }
  const parts = splitFrontmatter(text);
  if ('invalid' in parts) return parts;
  if (parts.yaml.length > FRONTMATTER_LENGTH)
    return { invalid: `the frontmatter of SKILL.md has ${parts.yaml.length} characters; at most ${FRONTMATTER_LENGTH} are taken` };
  const parsed = parseFrontmatter(parts.yaml);
  if (parsed === undefined)
    return { invalid: 'the frontmatter of SKILL.md is not plain YAML: no aliases, no repeated keys, text with a colon in quotes' };
  if (!isStorable(parsed.value)) return { invalid: 'the frontmatter of SKILL.md holds characters that are no Unicode text' };
  return { fields: parsed.value };
}

/** The value of a frontmatter's YAML; undefined where it is none, is too long, or has aliases or repeated keys. */
export function parseFrontmatter(yaml: string): { readonly value: unknown } | undefined {
  if (yaml.length > FRONTMATTER_LENGTH) return undefined;
  return parseYaml(yaml) ?? parseYaml(quoteColons(yaml));
}

/** Half a character, or the character zero, cannot be stored and is in no honest text. */
function isStorable(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed() && !value.includes('\0');
  return typeof value !== 'object' || value === null || Object.entries(value).flat().every(isStorable);
}

function parseYaml(yaml: string): { readonly value: unknown } | undefined {
  const document = parseDocument(yaml, { uniqueKeys: true, strict: true, merge: false, version: '1.2' });
  if (document.errors.length > 0) return undefined;
  try {
    const value: unknown = JSON.parse(JSON.stringify(document.toJS({ maxAliasCount: 0 })));
    return { value };
  } catch {
    return undefined;
  }
}

/** `description: Use when: x` is common and no YAML; the value gets quotes. */
function quoteColons(yaml: string): string {
  return yaml.replace(/^([A-Za-z_-]+): (?!["'[{|>])(.*: .*)$/gm, (_line, key: string, value: string) => `${key}: ${JSON.stringify(value)}`);
}
