import { isObject } from '@ambit/capability';
import type { AskedBack, Interaction, JsonObject } from '@ambit/contracts';

/** Whether such a question is asked within a call that goes on meanwhile. */
export const isWithinCall = (kind: Interaction['kind']): boolean => kind === 'elicitation' || kind === 'sampling';

/** What is wrong with an answer to a server's question, as a sentence; undefined where it may go back. */
export function contentProblem(asked: AskedBack, content: JsonObject | undefined): string | undefined {
  if (content === undefined) return 'what a server asked for is answered with content';
  const text = JSON.stringify(content);
  if (text.length > CONTENT_CHARACTERS) return `an answer may have ${CONTENT_CHARACTERS} characters`;
  // What is stored as JSON may hold neither.
  if (text.includes('\\u0000') || /\\ud[89a-f]/i.test(text)) return 'an answer may hold no NUL and no half of a character';
  if (asked.kind === 'sampling') return messageProblem(content);
  return asked.kind === 'form' ? formProblem(asked.requestedSchema, content) : undefined;
}

const CONTENT_CHARACTERS = 256 * 1024;

function messageProblem(content: JsonObject): string | undefined {
  const { role, model } = content;
  if (role !== 'assistant' && role !== 'user') return 'the role of a completion is assistant or user';
  if (typeof model !== 'string' || model === '') return 'a completion names its model';
  return isObject(content['content']) || Array.isArray(content['content']) ? undefined : 'a completion has content';
}

/** The forms of MCP are flat: text, numbers, yes or no, and choices. */
function formProblem(schema: JsonObject, content: JsonObject): string | undefined {
  const properties = isObject(schema['properties']) ? schema['properties'] : {};
  const required = Array.isArray(schema['required']) ? schema['required'] : [];
  const missing = required.find((name) => typeof name === 'string' && !Object.hasOwn(content, name));
  if (missing !== undefined) return `the field ${String(missing).slice(0, 100)} has to be filled in`;
  for (const [name, value] of Object.entries(content)) {
    const field = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (!isObject(field)) return `the form has no field ${name.slice(0, 100)}`;
    const problem = fieldProblem(field, value);
    if (problem !== undefined) return `the field ${name.slice(0, 100)} ${problem}`;
  }
  return undefined;
}

function fieldProblem(field: JsonObject, value: unknown): string | undefined {
  switch (field['type']) {
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'is true or false';
    case 'integer':
    case 'number':
      return numberProblem(field, value);
    case 'array':
      return Array.isArray(value)
        ? value.every((one) => isChoice(field['items'], one))
          ? undefined
          : 'has only the choices that it lists'
        : 'is a list';
    case 'string':
      return textProblem(field, value);
    default:
      return isChoice(field, value) ? undefined : 'is one of its choices';
  }
}

function numberProblem(field: JsonObject, value: unknown): string | undefined {
  if (typeof value !== 'number' || !Number.isFinite(value)) return 'is a number';
  if (field['type'] === 'integer' && !Number.isInteger(value)) return 'is a whole number';
  if (typeof field['minimum'] === 'number' && value < field['minimum']) return `is at least ${field['minimum']}`;
  return typeof field['maximum'] === 'number' && value > field['maximum'] ? `is at most ${field['maximum']}` : undefined;
}

function textProblem(field: JsonObject, value: unknown): string | undefined {
  if (typeof value !== 'string') return 'is a text';
  if (typeof field['minLength'] === 'number' && value.length < field['minLength']) return `has at least ${field['minLength']} characters`;
  if (typeof field['maxLength'] === 'number' && value.length > field['maxLength']) return `has at most ${field['maxLength']} characters`;
  return isChoice(field, value) ? undefined : 'is one of its choices';
}

/** Choices stand as `enum`, or as `oneOf` or `anyOf` of constants; a field without any takes everything. */
function isChoice(field: unknown, value: unknown): boolean {
  if (!isObject(field)) return true;
  if (Array.isArray(field['enum'])) return field['enum'].includes(value);
  const titled = Array.isArray(field['oneOf']) ? field['oneOf'] : Array.isArray(field['anyOf']) ? field['anyOf'] : undefined;
  return titled === undefined || titled.some((choice) => isObject(choice) && choice['const'] === value);
}
