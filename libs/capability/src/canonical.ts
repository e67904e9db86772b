import { utf8ToBytes } from '@noble/hashes/utils.js';
import { sha256Hex } from './sha256.js';

/** How large a value may be before anything is hashed or stored. Bytes are UTF-8 bytes of the canonical text. */
export interface Bounds {
  readonly maxBytes: number;
  readonly maxDepth: number;
  readonly maxKeys: number;
}

/** What one call's arguments, or any other value that somebody else wrote, may be. */
export const VALUE_BOUNDS: Bounds = { maxBytes: 1024 * 1024, maxDepth: 64, maxKeys: 10_000 };

/** What a whole snapshot may be: each tool's schema was bounded before, so only the sum is watched here. */
export const RECORD_BOUNDS: Bounds = { maxBytes: 64 * 1024 * 1024, maxDepth: 80, maxKeys: 5_000_000 };

/** A value without a canonical form, or over its bounds. `path` is a dotted path to what was wrong. */
export class NotCanonical extends Error {
  override readonly name = 'NotCanonical';
  constructor(
    readonly reason: string,
    readonly path: string,
  ) {
    super(path === '' ? reason : `${reason} at ${path}`);
  }
}

// Engines put such keys before all others and in the order of numbers, whatever order they were written in.
const INDEX_LIKE = /^(0|[1-9][0-9]{0,9})$/;

/**
 * Reads a value once: refuses what has no canonical form or is over its bounds, and answers an equal value whose keys stand in canonical order, so that
 * the engine's own JSON.stringify, which is many times faster than any written here, writes the canonical text. Parts in order are not copied.
 */
class Ordering {
  /** An object was met whose keys no engine can keep in canonical order: it has to be written by hand. */
  unordered = false;
  private units = 0;
  private keys = 0;
  /** Where the reading stands: one name a level, of which the first `depth` count. */
  private readonly path: (string | number)[] = [];
  private depth = 0;

  constructor(private readonly bounds: Bounds) {}

  value(value: unknown, depth: number): unknown {
    this.depth = depth;
    switch (typeof value) {
      case 'string':
        this.string(value);
        return value;
      case 'number':
        if (!Number.isFinite(value)) this.refuse('a number that JSON cannot hold');
        return value;
      case 'boolean':
        return value;
      case 'object':
        if (value === null) return value;
        if (depth >= this.bounds.maxDepth) this.refuse(`deeper than ${this.bounds.maxDepth}`);
        return Array.isArray(value) ? this.array(value, depth) : this.object(value, depth);
      default:
        return this.refuse(`a ${typeof value} is not JSON`);
    }
  }

  private array(value: readonly unknown[], depth: number): readonly unknown[] {
    this.count(value.length);
    let copy: unknown[] | null = null;
    for (let index = 0; index < value.length; index++) {
      this.path[depth] = index;
      const ordered = this.value(value[index], depth + 1);
      if (ordered !== value[index] && copy === null) copy = value.slice(0, index);
      copy?.push(ordered);
    }
    return copy ?? value;
  }

  private object(value: object, depth: number): object {
    if (!isPlain(value)) return this.refuse('an object of a class is not JSON');
    const names = Object.keys(value);
    let inOrder = true;
    for (let index = 1; index < names.length && inOrder; index++) inOrder = (names[index - 1] ?? '') < (names[index] ?? '');
    // Without a comparator, sort orders by UTF-16 code unit: the order that RFC 8785 wants.
    if (!inOrder) names.sort();
    // Most objects are in order, and then nothing is copied.
    let copy: Record<string, unknown> | null = inOrder ? null : {};
    for (let index = 0; index < names.length; index++) {
      const name = names[index] ?? '';
      const entry = value[name];
      this.path[depth] = name;
      this.depth = depth + 1;
      if (name === '__proto__') this.refuse('the key __proto__ is not allowed');
      if (entry === undefined) {
        copy ??= firstOf(value, names, index);
        continue;
      }
      if (++this.keys > this.bounds.maxKeys) this.refuse(`more than ${this.bounds.maxKeys} keys`);
      this.string(name);
      if (names.length > 1 && INDEX_LIKE.test(name)) this.unordered = true;
      const ordered = this.value(entry, depth + 1);
      if (ordered !== entry) copy ??= firstOf(value, names, index);
      if (copy !== null) copy[name] = ordered;
    }
    return copy ?? value;
  }

  private string(text: string): void {
    this.count(text.length);
    if (!text.isWellFormed()) this.refuse('text with half a surrogate pair');
  }

  /** Every unit of text is at least one byte, so a huge value is refused before it is written out; the exact size is known at the end. */
  private count(units: number): void {
    this.units += units;
    if (this.units > this.bounds.maxBytes) this.refuse(`larger than ${this.bounds.maxBytes} bytes`);
  }

  private refuse(reason: string): never {
    throw new NotCanonical(reason, this.path.slice(0, this.depth).join('.').slice(0, 200));
  }
}

/** The first so many members of an object, by these names. */
function firstOf(value: Readonly<Record<string, unknown>>, names: readonly string[], count: number): Record<string, unknown> {
  return Object.fromEntries(names.slice(0, count).map((name) => [name, value[name]]));
}

/** Tells an object that holds data alone from one of a class. One of another realm (a sandbox, a worker thread) has that realm's Object.prototype. */
function isPlain(value: object): value is Readonly<Record<string, unknown>> {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return true;
  return typeof prototype === 'object' && Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'hasOwnProperty');
}

/**
 * The canonical JSON of a value (RFC 8785): keys by code unit, no spaces, one spelling for each number. Properties that are undefined are absent.
 * Throws {@link NotCanonical} for what is not JSON, for half a surrogate pair, for the key `__proto__`, and over the bounds.
 */
export function canonicalJson(value: unknown, bounds: Bounds = VALUE_BOUNDS): string {
  const ordering = new Ordering(bounds);
  const ordered = ordering.value(value, 0);
  const text = ordering.unordered ? writeByHand(ordered) : JSON.stringify(ordered);
  if (text.length * 3 > bounds.maxBytes && utf8ToBytes(text).length > bounds.maxBytes)
    throw new NotCanonical(`larger than ${bounds.maxBytes} bytes`, '');
  return text;
}

/** The text of a value that an {@link Ordering} has read. */
function writeByHand(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(writeByHand).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([left], [right]) => byCodeUnit(left, right));
  return `{${members.map(([name, entry]) => `${JSON.stringify(name)}:${writeByHand(entry)}`).join(',')}}`;
}

/** An equal value whose keys stand in canonical order, so that it is written faster; refuses what {@link canonicalJson} refuses. */
export function inCanonicalOrder<T>(value: T, bounds?: Bounds): T;
export function inCanonicalOrder(value: unknown, bounds: Bounds = VALUE_BOUNDS): unknown {
  return new Ordering(bounds).value(value, 0);
}

/** The SHA-256 of the canonical JSON of a value: the same for equal values, in any key order and on any host. */
export function digestOf(value: unknown, bounds: Bounds = VALUE_BOUNDS): string {
  return sha256Hex(canonicalJson(value, bounds));
}

/** The canonical bytes of a snapshot record, as they are stored and hashed. */
export function canonicalRecord(record: unknown): string {
  return canonicalJson(record, RECORD_BOUNDS);
}

/** The id of a snapshot record: the hash of {@link canonicalRecord}. */
export function fingerprint(record: unknown): string {
  return sha256Hex(canonicalRecord(record));
}

/** Orders texts by UTF-16 code unit, as RFC 8785 orders keys: the same in every locale. */
export function byCodeUnit(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
