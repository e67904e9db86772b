import type { Answer, Interaction } from '@ambit/contracts';
import type { z } from 'zod';
import { isJson, type Json } from './json-rpc.js';

type AnswerIn = z.output<typeof Answer>;

/** A decision as a client's person took it; undefined where nobody took one. */
export type Decided = { readonly decision: 'allow' | 'deny' } | { readonly decision: 'answer'; readonly answer: AnswerIn } | undefined;

const PREVIEW = 2_000;

/** What a client is asked to show its person, as `elicitation/create` takes it. */
export function formOf({ kind, tool, argumentsPreview, rule, question }: Interaction): Json {
  if (kind === 'question' && question !== null) {
    const labels = question.options.map(({ label }) => label);
    const choice = question.multiple ? { type: 'array', items: { type: 'string', enum: labels } } : { type: 'string', enum: labels };
    const options = question.options.map(({ label, description }) => (description === '' ? `- ${label}` : `- ${label}: ${description}`));
    return {
      mode: 'form',
      message: [question.header, question.question, ...options].filter((line) => line !== '').join('\n'),
      requestedSchema: {
        type: 'object',
        properties: {
          selected: { title: 'Choose', ...choice },
          ...(question.custom ? { text: { type: 'string', title: 'Or in your own words', maxLength: 4_000 } } : {}),
        },
      },
    };
  }
  const asked = rule === null || rule === '' ? '' : `\nAsked because of: ${rule}`;
  return {
    mode: 'form',
    message: `May ${tool} be called with these arguments?\n${argumentsPreview.slice(0, PREVIEW)}${asked}`,
    requestedSchema: {
      type: 'object',
      properties: { decision: { type: 'string', title: 'Decision', enum: ['allow', 'deny'] } },
      required: ['decision'],
    },
  };
}

/** Reads what a client's person did with the form. Only an explicit yes is one. */
export function decidedBy({ kind }: Pick<Interaction, 'kind'>, answer: unknown): Decided {
  if (!isJson(answer)) return undefined;
  const { action } = answer;
  const content = isJson(answer['content']) ? answer['content'] : {};
  if (action === 'decline') return kind === 'question' ? undefined : { decision: 'deny' };
  if (action !== 'accept') return undefined;
  if (kind === 'question')
    return {
      decision: 'answer',
      answer: { selected: textsIn(content['selected']), text: typeof content['text'] === 'string' ? content['text'].slice(0, 4_000) : '' },
    };
  if (content['decision'] === 'allow') return { decision: 'allow' };
  return content['decision'] === 'deny' ? { decision: 'deny' } : undefined;
}

function textsIn(value: unknown): string[] {
  const all = Array.isArray(value) ? value : [value];
  return all.filter((one): one is string => typeof one === 'string' && one !== '' && one.length <= 30).slice(0, 10);
}
