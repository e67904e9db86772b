import { z } from 'zod';

/** What a contract needs of a schema. Narrow on purpose: the compiler holds every schema of every contract against it. */
export interface Schema {
  readonly _zod: { readonly input: unknown; readonly output: unknown };
  parse(value: unknown): unknown;
  safeParse(value: unknown): z.ZodSafeParseResult<unknown>;
}

/** Parses with a schema whose type is only known as a parameter. */
export function safeParse<T extends Schema>(schema: T, value: unknown): z.ZodSafeParseResult<z.output<T>> {
  return schema.safeParse(value) as z.ZodSafeParseResult<z.output<T>>;
}

/** The JSON Schema (2020-12) of what a schema takes. Objects stay open: readers must bear fields that they do not know. */
export function jsonSchemaOf(schema: Schema): Record<string, unknown> {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema as z.ZodType, { io: 'input', unrepresentable: 'any' });
  return rest;
}
