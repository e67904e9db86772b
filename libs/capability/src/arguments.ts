import { utf8ToBytes } from '@noble/hashes/utils.js';

/** Bounds of one call's arguments: bytes of UTF-8 text, nesting, keys in all. */
export const ARGUMENT_LIMITS = { bytes: 512 * 1024, depth: 64, keys: 10_000 } as const;

/** Arguments that are refused as they stand: nothing is repaired, guessed or dropped. */
export class BadArguments extends Error {
  override readonly name = 'BadArguments';
  readonly code = 'BAD_ARGUMENTS';
  constructor(readonly reason: string) {
    super(reason);
  }
}

const NUMBER = /-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;

/** Reads text that JSON.parse has accepted, for what JSON.parse accepts silently. Iterative: nesting costs no stack. */
class Scan {
  private keys = 0;
  /** One entry a level: the names seen in an object, or null in an array. */
  private readonly levels: (Set<string> | null)[] = [];
  private expectsKey = false;

  constructor(private readonly text: string) {}

  run(): void {
    let index = 0;
    while (index < this.text.length) index = this.token(index);
  }

  private token(index: number): number {
    const character = this.text.charAt(index);
    switch (character) {
      case '{':
      case '[':
        return this.open(character === '{', index);
      case '}':
      case ']':
        this.levels.pop();
        this.expectsKey = false;
        return index + 1;
      case ',':
        this.expectsKey = this.levels.at(-1) instanceof Set;
        return index + 1;
      case '"':
        return this.string(index);
      default:
        return character === '-' || (character >= '0' && character <= '9') ? this.number(index) : index + 1;
    }
  }

  private open(isObject: boolean, index: number): number {
    this.levels.push(isObject ? new Set() : null);
    if (this.levels.length > ARGUMENT_LIMITS.depth) throw new BadArguments(`nested deeper than ${ARGUMENT_LIMITS.depth} levels`);
    this.expectsKey = isObject;
    return index + 1;
  }

  private string(index: number): number {
    let end = index + 1;
    let escaped = false;
    for (; this.text.charAt(end) !== '"'; end++) {
      if (this.text.charAt(end) !== '\\') continue;
      escaped = true;
      end++;
    }
    const raw = this.text.slice(index + 1, end);
    const value = escaped ? String(JSON.parse(`"${raw}"`)) : raw;
    if (!value.isWellFormed()) throw new BadArguments('a text holds half a surrogate pair, which is no Unicode character');
    if (this.expectsKey) this.key(value);
    this.expectsKey = false;
    return end + 1;
  }

  private key(name: string): void {
    this.keys += 1;
    if (this.keys > ARGUMENT_LIMITS.keys) throw new BadArguments(`more than ${ARGUMENT_LIMITS.keys} keys`);
    if (name === '__proto__') throw new BadArguments('the key __proto__ is not allowed');
    const seen = this.levels.at(-1);
    if (seen?.has(name)) throw new BadArguments(`the key ${JSON.stringify(name.slice(0, 100))} stands twice in one object`);
    seen?.add(name);
  }

  private number(index: number): number {
    NUMBER.lastIndex = index;
    const literal = NUMBER.exec(this.text)?.[0] ?? '';
    const value = Number(literal);
    if (!Number.isFinite(value)) throw new BadArguments('a number is larger than any that can be passed on');
    // Rounding an identifier of 64 bits would call the tool for another thing than the model named.
    if (/^-?[0-9]+$/.test(literal) && !survives(literal, value))
      throw new BadArguments(`the integer ${literal.slice(0, 40)} would be rounded; send it as a string`);
    return index + Math.max(literal.length, 1);
  }
}

/**
 * Parses a call's arguments. Throws {@link BadArguments} unless the text is exactly one JSON object, at most 512 KiB, 64 levels and 10,000 keys,
 * without `__proto__`, repeated keys, half surrogate pairs or integers that would be rounded.
 */
export function parseArguments(text: string): Record<string, unknown> {
  if (
    text.length > ARGUMENT_LIMITS.bytes ||
    (text.length * 3 > ARGUMENT_LIMITS.bytes && utf8ToBytes(text).length > ARGUMENT_LIMITS.bytes)
  ) {
    throw new BadArguments(`larger than ${ARGUMENT_LIMITS.bytes} bytes`);
  }
  const value = parseJson(text);
  if (!isObject(value))
    throw new BadArguments(
      `must be a JSON object, not ${Array.isArray(value) ? 'an array' : value === null ? 'null' : `a ${typeof value}`}`,
    );
  new Scan(text).run();
  return value;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new BadArguments('not valid JSON');
  }
}

/** Tells whether an integer is the same after it was read: small, or spelled as the number it became is. */
function survives(literal: string, value: number): boolean {
  return Number.isSafeInteger(value) || String(value) === literal || BigInt(value) === BigInt(literal);
}

/** Tells a JSON object from every other JSON value. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
