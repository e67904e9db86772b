import type { StandardSchemaV1 } from '@modelcontextprotocol/client';

/** Tells a JSON object from everything else. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Lets every object through untouched, and makes an empty one of everything else. */
export const ANY_OBJECT: StandardSchemaV1<unknown, Record<string, unknown>> = {
  '~standard': { version: 1, vendor: 'ambit', validate: (value) => ({ value: isRecord(value) ? value : {} }) },
};
