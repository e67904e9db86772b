import { z } from 'zod';

/** What is wrong at one place of the file, and what would be right. */
export interface Problem {
  readonly path: readonly PropertyKey[];
  readonly text: string;
}

const WORDS: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map of fields',
  record: 'a map of names',
};
const word = (type: string) => WORDS[type] ?? type;

/** A schema's complaint as sentences; `value` is what the schema was given. */
export function problemsOf(error: z.ZodError, schema: z.ZodType, value: unknown): readonly Problem[] {
  return error.issues.flatMap((issue): readonly Problem[] => {
    if (issue.code === 'unrecognized_keys') {
      const fields = fieldsAt(schema, issue.path);
      const help = fields === undefined ? '' : `; it takes ${fields.join(', ')}`;
      return issue.keys.map((key) => ({ path: [...issue.path, key], text: `there is no such field${help}` }));
    }
    return [{ path: issue.path, text: sentence(issue, valueAt(value, issue.path)) }];
  });
}

function sentence(issue: z.core.$ZodIssue, found: unknown): string {
  if (found === null) return blank(issue);
  if (issue.code === 'invalid_type' && found === undefined) return `this is missing; it takes ${word(issue.expected)}`;
  if (issue.code === 'invalid_key') return `the name is not one that may stand here: ${issue.issues[0]?.message ?? ''}`;
  return help(issue);
}

function blank(issue: z.core.$ZodIssue): string {
  const right = help(issue);
  // The lists of a policy say this of themselves.
  return right.includes('leaving it out')
    ? `this is blank; ${right.replace(' null and a blank are errors, and', '')}`
    : `this is blank; ${right}, or leave it out`;
}

function help(issue: z.core.$ZodIssue): string {
  // A message of our own says it best; what the library says of itself begins so.
  if (!/^(Invalid|Too (big|small))/.test(issue.message)) return issue.message;
  if (issue.code === 'invalid_type') return `write ${word(issue.expected)}`;
  if (issue.code === 'invalid_value') return `write ${issue.values.map(String).join(' or ')}`;
  if (issue.code === 'too_big')
    return `at most ${issue.maximum} ${issue.origin === 'string' ? 'characters' : issue.origin === 'array' ? 'entries' : ''}`.trimEnd();
  if (issue.code === 'too_small')
    return `at least ${issue.minimum} ${issue.origin === 'string' ? 'characters' : issue.origin === 'array' ? 'entries' : ''}`.trimEnd();
  return issue.message;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((at, key) => (typeof at === 'object' && at !== null ? Reflect.get(at, key) : undefined), value);
}

/** The names of the fields that a map at this path takes; undefined where the schema does not say. */
function fieldsAt(schema: unknown, path: readonly PropertyKey[]): readonly string[] | undefined {
  let at: unknown = bare(schema);
  for (const key of path) {
    if (at instanceof z.ZodObject) at = bare(Reflect.get(at.shape, key));
    else if (at instanceof z.ZodRecord) at = bare(at.valueType);
    else if (at instanceof z.ZodArray) at = bare(at.element);
    else return undefined;
  }
  return at instanceof z.ZodObject ? Object.keys(at.shape) : undefined;
}

function bare(schema: unknown): unknown {
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault || schema instanceof z.ZodOptional) return bare(schema.unwrap());
  if (schema instanceof z.ZodPipe) return bare(schema.out);
  return schema;
}
