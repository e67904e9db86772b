import type { JsonObject } from '@ambit/contracts';
import { isRecord } from './records.js';

/** An argument that has to stand in a header too, so that what lies between client and server can route by it. */
export interface MirroredParameter {
  /** From the arguments down to the value. */
  readonly path: readonly string[];
  readonly header: string;
}

const DECLARES = 'x-mcp-header';
const PREFIX = 'Mcp-Param-';
/** What RFC 9110 calls a token: a header's name holds nothing else. */
const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/;
const TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean']);
/** Printable, and with nothing at its ends that is lost on the way. */
const PLAIN = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/;
const ENCODED = /^=\?base64\?.*\?=$/;
/** Deeper than any schema that people write. */
const DEEPEST = 64;

/** Of schemas that were looked at: no definition is ever changed in place, and each call asks. */
const known = new WeakMap<JsonObject, readonly MirroredParameter[] | string>();

/** The arguments that a tool wants mirrored; or what is wrong with how it says so, as the end of a sentence. */
export function mirroredParameters(inputSchema: JsonObject): readonly MirroredParameter[] | string {
  const before = known.get(inputSchema);
  if (before !== undefined) return before;
  const found = new Map<string, MirroredParameter>();
  const parameters = problemIn(inputSchema, { path: [], found, isReachable: false }) ?? [...found.values()];
  known.set(inputSchema, parameters);
  return parameters;
}

interface At {
  readonly path: readonly string[];
  /** By the header's name in lower case. */
  readonly found: Map<string, MirroredParameter>;
  /** A chain of `properties` leads here from the top: elsewhere nobody could tell which value is meant. */
  readonly isReachable: boolean;
}

function problemIn(schema: unknown, at: At): string | undefined {
  const { path, isReachable } = at;
  if (path.length > DEEPEST) return `has an input schema that is nested more than ${DEEPEST} deep`;
  if (Array.isArray(schema))
    return firstOf(schema.map((one: unknown) => () => problemIn(one, { ...at, path: [...path, ''], isReachable: false })));
  if (!isRecord(schema)) return undefined;
  return (
    problemOf(schema, at) ??
    firstOf(
      Object.entries(schema).map(([key, part]) => () => {
        if (key === 'properties' && isRecord(part)) return inProperties(part, { ...at, isReachable: isReachable || path.length === 0 });
        // What stands there are values, not schemas.
        if (key === 'default' || key === 'const' || key === 'enum' || key === 'examples' || key === DECLARES) return undefined;
        return problemIn(part, { ...at, path: [...path, key], isReachable: false });
      }),
    )
  );
}

function inProperties(properties: Readonly<Record<string, unknown>>, at: At): string | undefined {
  return firstOf(
    Object.entries(properties).map(
      ([name, part]) =>
        () =>
          problemIn(part, { ...at, path: [...at.path, name] }),
    ),
  );
}

/** What is wrong with the declaration of one property; where nothing is, it is noted. */
function problemOf(schema: Readonly<Record<string, unknown>>, { path, found, isReachable }: At): string | undefined {
  if (!Object.hasOwn(schema, DECLARES)) return undefined;
  const header = schema[DECLARES];
  const where = `declares ${DECLARES} at "${path.join('.').slice(0, 100)}"`;
  if (!isReachable) return `${where}, which no chain of properties leads to`;
  if (typeof header !== 'string' || !TOKEN.test(header)) return `${where} with something that is no name of a header`;
  if (!TYPES.has(schema['type'])) return `${where}, which is no string, integer or boolean`;
  const key = header.toLowerCase();
  if (found.has(key)) return `${where} with a name that another one has`;
  found.set(key, { path, header });
  return undefined;
}

/** The headers of one call; a value that is absent, null or nothing that fits into a header has none. */
export function parameterHeaders(parameters: readonly MirroredParameter[], values: JsonObject): Readonly<Record<string, string>> {
  return Object.fromEntries(
    parameters.flatMap(({ path, header }) => {
      const text = textOf(path.reduce<unknown>((at, key) => (isRecord(at) && Object.hasOwn(at, key) ? at[key] : undefined), values));
      return text === undefined ? [] : [[`${PREFIX}${header}`, encoded(text)] as const];
    }),
  );
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  return typeof value === 'boolean' ||
    Number.isSafeInteger(value) ||
    (typeof value === 'number' && Number.isFinite(value) && !Number.isInteger(value))
    ? String(value)
    : undefined;
}

const encoded = (text: string): string =>
  PLAIN.test(text) && !ENCODED.test(text) ? text : `=?base64?${Buffer.from(text, 'utf8').toString('base64')}?=`;

/** The first that says something; those behind it are not asked. */
function firstOf(asked: readonly (() => string | undefined)[]): string | undefined {
  for (const ask of asked) {
    const said = ask();
    if (said !== undefined) return said;
  }
  return undefined;
}
