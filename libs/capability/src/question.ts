import { Question } from '@ambit/contracts';
import { isObject } from './arguments.js';

export const QUESTION_TOOL = 'question';

/** Reads a question from a call's arguments; an option may say `header` for `label`. Answers the first thing that is wrong instead. */
export function readQuestion(input: Readonly<Record<string, unknown>>): { readonly question: Question } | { readonly problem: string } {
  const options = Array.isArray(input.options) ? input.options.map((option) => trimmed(withLabel(option))) : input.options;
  const parsed = Question.safeParse(trimmed({ ...input, options }));
  if (parsed.success) return { question: parsed.data };
  const issue = parsed.error.issues[0];
  const path = issue?.path.join('.') ?? '';
  return { problem: path === '' ? (issue?.message ?? 'not a question') : `${path}: ${issue?.message ?? 'wrong'}` };
}

function withLabel(option: unknown): unknown {
  if (!isObject(option) || option.label !== undefined || option.header === undefined) return option;
  const { header, ...rest } = option;
  return { ...rest, label: header };
}

/** Blanks around a text say nothing to a person, and a text of blanks alone is none. */
function trimmed(value: unknown): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, typeof entry === 'string' ? entry.trim() : entry]));
}
