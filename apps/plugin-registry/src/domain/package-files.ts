import { isObject } from '@ambit/capability';
import type { z } from 'zod';
import { strictJson } from './strict-json.js';

/** Bytes of a JSON file or a SKILL.md that is still read to understand a package. */
export const TEXT_BYTES = 256 * 1024;
/** Whether a file of a package is read to understand it. */
export const isRead = (path: string): boolean =>
  path.endsWith('.json') || path === 'SKILL.md' || path.endsWith('/SKILL.md') || /^agents\/[^/]+\.md$/.test(path);

/** A package as its manifest is read from: where every file is, and what stands in those that {@link isRead} names. */
export interface PackageFiles {
  readonly paths: readonly string[];
  /** By path; null where a file is larger than {@link TEXT_BYTES}. */
  readonly texts: ReadonlyMap<string, string | null>;
  /** Where its servers would run. */
  readonly here: Here;
}

/** A system as Node names it (`linux`, `x64`), and Ambit's own version. */
export interface Here {
  readonly platform: string;
  readonly arch: string;
  readonly version: string;
}

/** A package that is not taken, and which of its files is to blame. */
export class PackageRefused extends Error {
  constructor(
    readonly path: string,
    readonly reason: string,
  ) {
    super(`${path}: ${reason}`);
  }
}

/** One object names a key twice, and which of the two is meant nobody knows. */
export class KeyTwice extends PackageRefused {}

/** The JSON that stands in a file; undefined where there is none. Throws {@link PackageRefused}. */
export function jsonOf(files: PackageFiles, path: string): unknown {
  const text = files.texts.get(path);
  if (text === undefined) return undefined;
  if (text === null) throw new PackageRefused(path, `it is larger than ${TEXT_BYTES} bytes`);
  const read = strictJson(text);
  if ('value' in read) return read.value;
  throw read.isTwice ? new KeyTwice(path, read.problem) : new PackageRefused(path, read.problem);
}

/** The object that stands in a file, where it holds one; undefined otherwise. */
export function peek(files: PackageFiles, path: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value = jsonOf(files, path);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** A file's JSON in the shape that it has to have. Throws {@link PackageRefused}. */
export function parsed<S extends z.ZodType>(schema: S, value: unknown, path: string): z.output<S> {
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  throw new PackageRefused(path, sentence(read.error));
}

/** What is wrong with a value, in one sentence. */
export function sentence(error: z.ZodError): string {
  const [issue] = error.issues;
  return issue === undefined
    ? 'it does not have the right shape'
    : `${issue.path.map(String).join('.') || 'it'}: ${issue.message}`.slice(0, 500);
}

/** A sentence for each field of an object that its format does not know. */
export function unknownFields(value: object, known: readonly string[], path: string): string[] {
  return Object.keys(value)
    .filter((key) => !known.includes(key))
    .map((key) => `${path}: unknown field "${key.slice(0, 80)}" is ignored`);
}

/** A path below the root as a manifest writes it (`./x`, `x/`), made plain. Throws {@link PackageRefused} where it leaves the package. */
export function inside(written: string, path: string): string {
  const parts = written.replace(/^\.\//, '').replace(/\/+$/, '').split('/');
  if (/^[a-z]:|\\/i.test(written) || parts.some((part) => part === '' || part === '.' || part === '..'))
    throw new PackageRefused(path, `"${written.slice(0, 200)}" does not stay inside the package`);
  return parts.join('/');
}

/** Throws {@link PackageRefused} where one of these stands twice. */
export function once(ids: readonly string[], path: string, what: string): void {
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice !== undefined) throw new PackageRefused(path, `there are two ${what}s "${twice.slice(0, 100)}"`);
}
