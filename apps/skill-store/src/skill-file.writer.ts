import { splitFrontmatter, utf8Text } from '@ambit/capability';
import { parseDocument } from 'yaml';
import { adaptDialect, type FolderDialect } from './domain/import-dialect.js';
import { readPage, type PageDialect } from './domain/import-page.js';
import { parseFrontmatter, readSkillFile, SKILL_FILE_BYTES } from './skill-file.reader.js';

export interface AdaptedFile {
  readonly bytes: Uint8Array;
  /** What the tool would do with it and Ambit does not. */
  readonly dropped: readonly string[];
}

/** A tool's SKILL.md as one of the specification: the same bytes where nothing is missing. What cannot be read is left for the validator. */
export function adaptSkillFile(bytes: Uint8Array, from: { readonly dialect: FolderDialect; readonly folder: string }): AdaptedFile {
  const text = bytes.byteLength > SKILL_FILE_BYTES ? undefined : utf8Text(bytes);
  const parts = text === undefined ? undefined : partsOf(text, from.dialect === 'claude');
  const parsed = parts === undefined ? undefined : parseFrontmatter(parts.yaml);
  if (parts === undefined || parsed === undefined) return { bytes, dropped: [] };
  const { lines, dropped } = adaptDialect(fieldsOf(parsed.value), parts.body, from);
  return { bytes: lines.length === 0 ? bytes : join(`${lines.join('\n')}\n${parts.yaml}`, parts.body), dropped };
}

/** A tool's page as a SKILL.md: a front matter of ours before its own text. What cannot be read is left for the validator. */
export function adaptPage(bytes: Uint8Array, { dialect, path }: { readonly dialect: PageDialect; readonly path: string }): AdaptedFile {
  const text = bytes.byteLength > SKILL_FILE_BYTES ? undefined : utf8Text(bytes);
  const parts = text === undefined ? undefined : partsOf(text, true);
  const parsed = parts === undefined ? undefined : parseFrontmatter(parts.yaml);
  if (parts === undefined || parsed === undefined) return { bytes, dropped: [] };
  const file = path.slice(path.lastIndexOf('/') + 1);
  const { name, description, dropped } = readPage(dialect, { fields: fieldsOf(parsed.value), body: parts.body, file });
  const lines = Object.entries({ name, description }).flatMap(([key, value]) =>
    value === null ? [] : `${key}: ${JSON.stringify(value)}\n`,
  );
  return { bytes: join(lines.join(''), parts.body), dropped };
}

/** The same SKILL.md under another name, or undefined where no way of writing it leaves the rest as it was. */
export function renameSkillFile(bytes: Uint8Array, name: string): Uint8Array | undefined {
  const text = utf8Text(bytes);
  const parts = text === undefined ? undefined : splitFrontmatter(text);
  const before = readSkillFile(bytes, null);
  if (parts === undefined || 'invalid' in parts || 'invalid' in before) return undefined;
  const wanted = JSON.stringify({ ...before.facts, name });
  // The line alone where that does it: comments, order and quotes of the others stay.
  for (const write of [replaceLine, rewrite]) {
    const written = join(write(parts.yaml, name), parts.body);
    const after = readSkillFile(written, null);
    if (!('invalid' in after) && JSON.stringify(after.facts) === wanted) return written;
  }
  return undefined;
}

function replaceLine(yaml: string, name: string): string {
  return yaml.replace(/^name:.*$/m, `name: ${name}`);
}

function rewrite(yaml: string, name: string): string {
  const document = parseDocument(yaml);
  document.set('name', name);
  return String(document);
}

/** Where the tool takes a file without a front matter, its text is all there is. */
function partsOf(text: string, takesBare: boolean): { readonly yaml: string; readonly body: string } | undefined {
  const parts = splitFrontmatter(text);
  if (!('invalid' in parts)) return parts;
  const isBare = takesBare && !/^\uFEFF?---\r?\n/.test(text);
  return isBare ? { yaml: '', body: text.replace(/^\uFEFF/, '') } : undefined;
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}

function join(yaml: string, body: string): Uint8Array {
  return Buffer.from(`---\n${yaml}---\n${body}`);
}
