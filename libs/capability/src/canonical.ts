import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import * as canonicalizer from 'canonicalize';

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

// `\p{Surrogate}` with the u flag finds only the surrogates that are not half of a pair.
const LONE_SURROGATE = /\p{Surrogate}/u;

/** Tells whether a string is well-formed UTF-16, the only kind that has UTF-8 bytes. */
export function isWellFormed(text: string): boolean {
  return !LONE_SURROGATE.test(text);
}

// The package is CommonJS; loaders differ on where they put its one function.
const serialize = pick(canonicalizer);

function pick(loaded: unknown): (value: unknown) => string | undefined {
  let found = loaded;
  while (typeof found === 'object' && found !== null && 'default' in found) found = found.default;
  if (typeof found !== 'function') throw new TypeError('the package canonicalize did not export its function');
  const call: (...values: readonly unknown[]) => unknown = found.bind(undefined);
  return (value) => {
    const text = call(value);
    return typeof text === 'string' ? text : undefined;
  };
}

class Walk {
  private keys = 0;
  /** Units of text seen so far: a cheap lower bound of the size, so that a huge value is refused before it is written out. */
  private units = 0;
  private readonly path: (string | number)[] = [];

  constructor(private readonly bounds: Bounds) {}

  value(value: unknown, depth: number): void {
    if (typeof value === 'string') return this.text(value);
    if (value === null || typeof value === 'boolean') return;
    if (typeof value === 'number') {
      if (!Number.isFinite(value)) this.refuse('a number that JSON cannot hold');
      return;
    }
    if (typeof value !== 'object') this.refuse(`a ${typeof value} is not JSON`);
    if (depth >= this.bounds.maxDepth) this.refuse(`deeper than ${this.bounds.maxDepth}`);
    if (Array.isArray(value)) return this.array(value, depth);
    return this.object(value, depth);
  }

  private array(value: readonly unknown[], depth: number): void {
    this.count(value.length, 0);
    for (let index = 0; index < value.length; index++) {
      this.path.push(index);
      this.value(value[index], depth + 1);
      this.path.pop();
    }
  }

  private object(value: object, depth: number): void {
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype !== Object.prototype && prototype !== null && !isForeignPlain(prototype)) this.refuse('an object of a class is not JSON');
    for (const [key, entry] of Object.entries(value)) {
      this.path.push(key);
      if (key === '__proto__') this.refuse('the key __proto__ is not allowed');
      if (key === 'toJSON' && typeof entry === 'function') this.refuse('a function is not JSON');
      if (entry !== undefined) {
        this.count(1, 1);
        this.text(key);
        this.value(entry, depth + 1);
      }
      this.path.pop();
    }
  }

  private text(text: string): void {
    this.count(text.length, 0);
    if (!isWellFormed(text)) this.refuse('text with half a surrogate pair');
  }

  private count(units: number, keys: number): void {
    this.units += units;
    this.keys += keys;
    if (this.units > this.bounds.maxBytes) this.refuse(`larger than ${this.bounds.maxBytes} bytes`);
    if (this.keys > this.bounds.maxKeys) this.refuse(`more than ${this.bounds.maxKeys} keys`);
  }

  private refuse(reason: string): never {
    throw new NotCanonical(reason, this.path.join('.').slice(0, 200));
  }
}

/** A plain object of another realm (a test's sandbox, a worker thread): its prototype has no prototype of its own and is nobody's class. */
function isForeignPlain(prototype: unknown): boolean {
  return (
    typeof prototype === 'object' &&
    prototype !== null &&
    Object.getPrototypeOf(prototype) === null &&
    Object.hasOwn(prototype, 'hasOwnProperty')
  );
}

/**
 * The canonical JSON of a value (RFC 8785): keys by code unit, no spaces, one spelling for each number. Properties that are undefined are absent.
 * Throws {@link NotCanonical} for what is not JSON, for half a surrogate pair, for the key `__proto__`, and over the bounds.
 */
export function canonicalJson(value: unknown, bounds: Bounds = VALUE_BOUNDS): string {
  new Walk(bounds).value(value, 0);
  const text = serialize(value);
  if (text === undefined) throw new NotCanonical('not JSON', '');
  if (text.length > bounds.maxBytes || (text.length * 3 > bounds.maxBytes && utf8ToBytes(text).length > bounds.maxBytes)) {
    throw new NotCanonical(`larger than ${bounds.maxBytes} bytes`, '');
  }
  return text;
}

/** The SHA-256 of bytes, or of a text's UTF-8 bytes, as 64 lower-case hexadecimal digits. */
export function sha256Hex(input: string | Uint8Array): string {
  return bytesToHex(sha256(typeof input === 'string' ? utf8ToBytes(input) : input));
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
