import { CallResult, ContentBlock, IntendedCall, type TapeMessage } from '@ambit/contracts';
import { z } from 'zod';
import { utf8Length, type StoredEntry, type Window } from './tape.js';

const Said = z.object({ content: z.array(ContentBlock), raw: z.unknown().optional() });

/** What belongs together for a model: a message and, right behind it, the results of its calls. */
interface Group {
  readonly id: number;
  readonly entry: StoredEntry;
  readonly calls: IntendedCall[];
  readonly results: Map<string, CallResult>;
}

export interface ViewOptions {
  readonly budgetBytes: number;
  /** The step whose calls may still run; a call of an earlier step without a result will never have one. */
  readonly openStep: { readonly originRunId: string; readonly step: number } | null;
  /** Whether the tape has entries before these. */
  readonly hasOlder: boolean;
}

/** Builds what a worker reads from entries in tape order. Results stand right behind the message whose calls they answer, in call order. */
export function tapeView(entries: readonly StoredEntry[], options: ViewOptions): Window {
  const groups = groupsOf(entries);
  const messages: TapeMessage[] = [];
  let left = options.budgetBytes;
  let oldest: number | null = null;
  let taken = 0;
  for (const group of groups.toReversed()) {
    const built = messagesOf(group, options);
    const size = sizeOf(built);
    const fitted = size <= left ? built : taken === 0 ? shrink(built, left) : null;
    if (fitted === null) break;
    messages.unshift(...fitted);
    left -= Math.min(size, sizeOf(fitted));
    oldest = group.id;
    taken++;
  }
  const more = options.hasOlder || taken < groups.length;
  return { messages, more, before: more ? (oldest ?? entries.at(-1)?.id ?? null) : null };
}

function groupsOf(entries: readonly StoredEntry[]): Group[] {
  const groups: Group[] = [];
  const byStep = new Map<string, Group>();
  for (const entry of entries) {
    const key = `${entry.originRunId} ${entry.step}`;
    if (entry.kind === 'message') {
      const group: Group = { id: entry.id, entry, calls: [], results: new Map() };
      groups.push(group);
      if (entry.role === 'assistant') byStep.set(key, group);
    } else if (entry.kind === 'tool_call') {
      byStep.get(key)?.calls.push(IntendedCall.parse(entry.content));
    } else if (entry.kind === 'tool_result' && entry.callId !== null) {
      byStep.get(key)?.results.set(entry.callId, CallResult.parse(entry.content));
    }
  }
  return groups;
}

function messagesOf(group: Group, { openStep }: ViewOptions): TapeMessage[] {
  const { entry } = group;
  const content = Said.parse(entry.content);
  const message: TapeMessage = {
    role: entry.role === 'assistant' || entry.role === 'system' ? entry.role : 'user',
    content: content.content,
    ...(content.raw === undefined ? {} : { raw: content.raw }),
  };
  const isOpen = openStep !== null && entry.originRunId === openStep.originRunId && entry.step === openStep.step;
  const results = group.calls.flatMap(({ callId }) => {
    const result = group.results.get(callId);
    if (result !== undefined) return [result];
    return isOpen ? [] : [withoutResult(callId)];
  });
  return results.length === 0 ? [message] : [message, { role: 'tool', results }];
}

/** Providers refuse a call without a result, and nothing will come for this one: its run ended before it was dispatched. */
const withoutResult = (callId: string): CallResult => ({
  callId,
  status: 'cancelled',
  fault: { code: 'CANCELLED', message: 'The run ended before this call was made' },
});

const sizeOf = (value: unknown) => utf8Length(JSON.stringify(value));

/** Degrades one group from its last result backwards, then drops the provider's own blocks; null where it does not fit even so. */
function shrink(messages: readonly TapeMessage[], budget: number): TapeMessage[] | null {
  let current = [...messages];
  const [message, tool] = messages;
  if (tool !== undefined && 'results' in tool && message !== undefined) {
    const results = [...tool.results];
    for (let index = results.length - 1; index >= 0 && sizeOf(current) > budget; index--) {
      const result = results[index];
      if (result === undefined) continue;
      results[index] = stub(result);
      current = [message, { role: 'tool', results }];
    }
  }
  if (sizeOf(current) > budget) current = current.map((one) => ('results' in one ? one : { role: one.role, content: one.content }));
  return sizeOf(current) <= budget ? current : null;
}

function stub(result: CallResult): CallResult {
  const { callId, status, artifact, fault } = result;
  const text = `This result does not fit here (${sizeOf(result)} bytes).`;
  return {
    callId,
    status,
    content: [{ type: 'text', text }],
    ...(artifact === undefined ? {} : { artifact }),
    ...(fault === undefined ? {} : { fault }),
  };
}
