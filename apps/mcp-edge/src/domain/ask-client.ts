import type { Answer, Interaction } from '@ambit/contracts';
import type { z } from 'zod';
import type { ClientAbilities } from './client-session.js';
import { isJson, type Json } from './json-rpc.js';
import { META_KEY } from './protocol.js';

type AnswerIn = z.output<typeof Answer>;

/** A decision as a client's person took it; undefined where nobody took one. */
export type Decided =
  | { readonly decision: 'allow' | 'deny' }
  | { readonly decision: 'withdraw' }
  | { readonly decision: 'answer'; readonly answer: AnswerIn }
  | undefined;

const PREVIEW = 2_000;

/** How a client is asked: with which request, answered how. */
export interface Asking {
  readonly method: 'elicitation/create' | 'sampling/createMessage';
  readonly params: Json;
}

/** What has to be known of a client to ask it. */
interface Askable {
  readonly can: ClientAbilities;
  readonly era: 'legacy' | 'modern';
}

/** How this client can be asked for a decision; undefined where it cannot. */
export function askingOf(interaction: Interaction, { can, era }: Askable): Asking | undefined {
  const { askedBack, kind, id } = interaction;
  switch (askedBack?.kind) {
    case 'form':
      return can.form
        ? {
            method: 'elicitation/create',
            params: { mode: 'form', message: askedBack.message, requestedSchema: askedBack.requestedSchema, ...askedBy(askedBack.server) },
          }
        : undefined;
    case 'url':
      return can.url
        ? {
            method: 'elicitation/create',
            params: {
              mode: 'url',
              message: askedBack.message,
              url: askedBack.url,
              ...(era === 'legacy' ? { elicitationId: id } : {}),
              ...askedBy(askedBack.server),
            },
          }
        : undefined;
    case 'sampling':
      return can.sampling ? { method: 'sampling/createMessage', params: askedBack.params } : undefined;
    case undefined:
      return can.form && (kind === 'permission' || kind === 'question' || kind === 'delegation')
        ? { method: 'elicitation/create', params: formOf(interaction) }
        : undefined;
  }
}

/** Which of the servers behind us asks. */
const askedBy = (server: string): Json => ({ _meta: { [META_KEY.server]: server } });

/** What a client is asked to show its person, as `elicitation/create` takes it. */
function formOf({ kind, tool, argumentsPreview, rule, question }: Interaction): Json {
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

/** Reads what a client's person, or model, did about it. Only an explicit yes is one. */
export function decidedBy({ kind, askedBack }: Pick<Interaction, 'kind' | 'askedBack'>, answer: unknown): Decided {
  if (!isJson(answer)) return undefined;
  const { action } = answer;
  const content = isJson(answer['content']) ? answer['content'] : {};
  if (askedBack?.kind === 'sampling') return { decision: 'answer', answer: { ...NO_ANSWER, content: answer } };
  if (action === 'decline') return kind === 'question' ? undefined : { decision: 'deny' };
  if (action === 'cancel') return askedBack === null || askedBack === undefined ? undefined : { decision: 'withdraw' };
  if (action !== 'accept') return undefined;
  if (askedBack?.kind === 'form') return { decision: 'answer', answer: { ...NO_ANSWER, content } };
  if (askedBack?.kind === 'url') return { decision: 'allow' };
  if (kind === 'question') {
    const text = typeof content['text'] === 'string' ? content['text'].slice(0, 4_000) : '';
    return { decision: 'answer', answer: { selected: textsIn(content['selected']), text } };
  }
  if (content['decision'] === 'allow') return { decision: 'allow' };
  return content['decision'] === 'deny' ? { decision: 'deny' } : undefined;
}

const NO_ANSWER = { selected: [], text: '' };

function textsIn(value: unknown): string[] {
  const all = Array.isArray(value) ? value : [value];
  return all.filter((one): one is string => typeof one === 'string' && one !== '' && one.length <= 30).slice(0, 10);
}
