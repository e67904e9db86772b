import { z } from 'zod';
import { isObject } from './arguments.js';

export const QUESTION_TOOL = 'question';

const Option = z.strictObject({ label: z.string().trim().min(1).max(30), description: z.string().max(200).default('') });

/** What the tool `question` may ask a person. */
export const Question = z
  .strictObject({
    header: z.string().trim().max(30).default(''),
    question: z.string().trim().min(1).max(500),
    options: z.array(Option).min(1).max(10),
    multiple: z.boolean().default(false),
    custom: z.boolean().default(true),
  })
  .meta({ id: 'Question', description: 'An ordered question to a person, in place of a call' });
export type Question = z.output<typeof Question>;

/** Reads a question from a call's arguments; an option may say `header` for `label`. Answers the first thing that is wrong instead. */
export function readQuestion(input: Readonly<Record<string, unknown>>): { readonly question: Question } | { readonly problem: string } {
  const options = Array.isArray(input.options) ? input.options.map(withLabel) : input.options;
  const parsed = Question.safeParse({ ...input, options });
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
