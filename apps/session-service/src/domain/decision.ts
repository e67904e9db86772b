import { entitlement } from '@ambit/capability';
import type { Answer, AskedBack, CallResult, Interaction, Principal, Question } from '@ambit/contracts';
import type { z } from 'zod';
import { contentProblem, isWithinCall } from './asked-back.js';

export type AnswerIn = z.output<typeof Answer>;

export interface Decision {
  readonly decision: 'allow' | 'deny' | 'answer';
  readonly answer?: AnswerIn | undefined;
  readonly by: Principal;
  readonly groups: readonly string[];
}

export type DecisionVerdict =
  | { readonly kind: 'accept' }
  | { readonly kind: 'expired' }
  | {
      readonly kind: 'refuse';
      readonly code: 'NO_INTERACTION' | 'APPROVAL_EXPIRED' | 'INTERACTION_KIND' | 'ANSWER_EMPTY' | 'APPROVER_NOT_ENTITLED';
    }
  | { readonly kind: 'order'; readonly first: string }
  | { readonly kind: 'invalid'; readonly reason: string };

/** Whether a person may take this decision now. `first` is the earliest pending interaction of the session. */
export function decisionVerdict(
  interaction: Interaction,
  decision: Decision,
  now: { readonly at: Date; readonly first: string },
): DecisionVerdict {
  // Whoever comes too late is told so, whether the sweeper was there before or not.
  if (interaction.status === 'expired') return { kind: 'refuse', code: 'APPROVAL_EXPIRED' };
  if (interaction.status !== 'pending') return { kind: 'refuse', code: 'NO_INTERACTION' };
  if (Date.parse(interaction.expiresAt) <= now.at.getTime()) return { kind: 'expired' };
  if (now.first !== interaction.id) return { kind: 'order', first: now.first };
  if (!fitsKind(interaction, decision)) return { kind: 'refuse', code: 'INTERACTION_KIND' };
  if (!isEntitled(interaction, decision)) return { kind: 'refuse', code: 'APPROVER_NOT_ENTITLED' };
  if (decision.decision !== 'answer') return { kind: 'accept' };
  return interaction.askedBack === null || interaction.askedBack === undefined
    ? answerVerdict(interaction.question, decision.answer)
    : contentVerdict(interaction.askedBack, decision.answer);
}

/** A URL is opened or not, and a form filled in or declined; nobody can answer one in the way of the other. */
function fitsKind({ kind, askedBack }: Interaction, { decision }: Decision): boolean {
  if (kind === 'question') return decision === 'answer';
  if (isWithinCall(kind)) return decision === 'deny' || (decision === 'answer') === (askedBack?.kind !== 'url');
  return decision !== 'answer';
}

/** An empty list of approvers leaves it to the roles that the caller checked. */
function isEntitled({ agentId, rule, approvers, notRequester, principal }: Interaction, { by, groups }: Decision): boolean {
  const terms = [{ agentId, rule: rule ?? '', approvers, not: notRequester ? ('requester' as const) : null }];
  const named = groups.map((group) => (group.startsWith('group:') ? group : `group:${group}`));
  return entitlement(terms, { id: by.id, groups: named }, principal.id) !== 'refused';
}

function contentVerdict(asked: AskedBack, answer: AnswerIn | undefined): DecisionVerdict {
  const reason = contentProblem(asked, answer?.content);
  return reason === undefined ? { kind: 'accept' } : { kind: 'invalid', reason };
}

function answerVerdict(question: Question | null, answer: AnswerIn | undefined): DecisionVerdict {
  const selected = answer?.selected ?? [];
  const text = answer?.text.trim() ?? '';
  if (selected.length === 0 && text === '') return { kind: 'refuse', code: 'ANSWER_EMPTY' };
  if (question === null) return { kind: 'accept' };
  const labels = new Set(question.options.map(({ label }) => label));
  const unknown = selected.find((label) => !labels.has(label));
  if (unknown !== undefined) return { kind: 'invalid', reason: `"${unknown}" is none of the options` };
  if (!question.multiple && selected.length > 1) return { kind: 'invalid', reason: 'this question takes one option' };
  if (!question.custom && text !== '') return { kind: 'invalid', reason: 'this question takes options alone, no text of its own' };
  return { kind: 'accept' };
}

/** What the model reads of a person's answer. */
export function answerResult(callId: string, answer: AnswerIn): CallResult {
  const parts = [...answer.selected, ...(answer.text.trim() === '' ? [] : [answer.text])];
  return {
    callId,
    status: 'completed',
    content: [{ type: 'text', text: parts.join('\n') }],
    structuredContent: { selected: answer.selected, text: answer.text },
  };
}

/** How a call ends whose person said no, said nothing, or was asked in vain. */
export function refusedResult(callId: string, fault: { readonly code: string; readonly message: string }): CallResult {
  return { callId, status: fault.code === 'CANCELLED' ? 'cancelled' : 'refused', fault };
}
