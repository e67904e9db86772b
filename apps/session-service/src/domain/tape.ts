import type { CallResult, ContentBlock, IntendedCall, MessageIn, Run, TapeEntry, TapeMessage } from '@ambit/contracts';

/** An entry before it has its place on the tape. */
export interface NewEntry {
  readonly runId: string | null;
  readonly originRunId: string | null;
  readonly kind: TapeEntry['kind'];
  readonly step: number | null;
  readonly callId: string | null;
  readonly role: string | null;
  readonly content: unknown;
  readonly text: string;
}

/** An entry as it stands on the tape, with what ties results to calls. */
export interface StoredEntry extends Omit<NewEntry, 'text'> {
  readonly id: number;
  readonly at: string;
}

export interface OfRun {
  readonly runId: string;
  readonly originRunId: string;
}

// A tsvector holds at most 1 MiB; this many units of text stay far below, whatever their bytes.
const SEARCHABLE = 200_000;

/** What a search reads of blocks: their texts. Postgres text holds no NUL. */
function textOf(blocks: readonly unknown[]): string {
  const texts = blocks.flatMap((block) => (isTextBlock(block) ? [block.text] : []));
  return searchable(texts.join('\n'));
}

const isTextBlock = (block: unknown): block is { text: string } =>
  typeof block === 'object' && block !== null && 'text' in block && typeof block.text === 'string';

/** Halves of surrogate pairs, which UTF-8 cannot hold, become the replacement character. */
const wellFormed = (text: string) => text.replace(/\p{Surrogate}/gu, '\ufffd');

function searchable(text: string): string {
  return wellFormed(text.slice(0, SEARCHABLE).replaceAll('\u0000', ' '));
}

export function userEntry(message: Pick<MessageIn, 'content' | 'media'>, run: OfRun | null): NewEntry {
  const content: ContentBlock[] = [
    { type: 'text', text: message.content },
    ...message.media.map(({ kind, artifact, url }) => ({
      type: kind,
      ...(artifact === undefined ? {} : { artifact }),
      ...(url === undefined ? {} : { url }),
    })),
  ];
  return {
    runId: run?.runId ?? null,
    originRunId: run?.originRunId ?? null,
    kind: 'message',
    step: null,
    callId: null,
    role: 'user',
    content: { content },
    text: textOf(content),
  };
}

/** The text of a message on the tape. */
export function saidText(entry: Pick<StoredEntry, 'content'> | undefined): string {
  const content = entry?.content;
  return typeof content === 'object' && content !== null && 'content' in content && Array.isArray(content.content)
    ? textOf(content.content)
    : '';
}

/** Something that happened to the session itself, for whoever reads its tape later. */
export function eventEntry(text: string): NewEntry {
  return { runId: null, originRunId: null, kind: 'event', step: null, callId: null, role: null, content: { text }, text };
}

export interface Said {
  readonly step: number;
  readonly content: readonly ContentBlock[];
  readonly calls: readonly IntendedCall[];
  readonly raw?: unknown;
  readonly stop?: string | null | undefined;
  readonly usage?: unknown;
}

/** What a model said in one step: its message, then its calls in order. */
export function stepEntries(said: Said, run: OfRun): NewEntry[] {
  const { step, content, calls, raw, stop, usage } = said;
  const extra = {
    ...(raw === undefined ? {} : { raw }),
    ...(stop === null || stop === undefined ? {} : { stop }),
    ...(usage === null || usage === undefined ? {} : { usage }),
  };
  const message: NewEntry = {
    ...run,
    kind: 'message',
    step,
    callId: null,
    role: 'assistant',
    content: { content, ...extra },
    text: textOf(content),
  };
  return [message, ...calls.map((call) => callEntry(call, step, run))];
}

/** One call that was asked for in a step. */
export function callEntry(call: IntendedCall, step: number, run: OfRun): NewEntry {
  return {
    ...run,
    kind: 'tool_call',
    step,
    callId: call.callId,
    role: 'assistant',
    content: call,
    text: searchable(`${call.name} ${call.arguments}`),
  };
}

export function resultEntry(result: CallResult, step: number, run: OfRun): NewEntry {
  const text = textOf([
    ...(result.content ?? []),
    ...(result.fault === undefined ? [] : [{ text: `${result.fault.code} ${result.fault.message}` }]),
  ]);
  return { ...run, kind: 'tool_result', step, callId: result.callId, role: 'tool', content: result, text };
}

/** Marks where another run takes the tape over: what `tape_handoff` stands for, which the platform alone does. */
export function handoffEntry(from: Pick<Run, 'id'>, to: Pick<Run, 'id' | 'originRunId'>, reason: string): NewEntry {
  const content = { name: 'handoff', from: from.id, to: to.id, reason };
  return {
    runId: to.id,
    originRunId: to.originRunId,
    kind: 'anchor',
    step: null,
    callId: null,
    role: null,
    content,
    text: `handoff ${reason}`,
  };
}

/** Marks from where on a run sees another snapshot than before. */
export function refreshEntry(run: OfRun, from: string, to: string): NewEntry {
  const content = { name: 'refresh', from, to };
  return { ...run, kind: 'event', step: null, callId: null, role: null, content, text: '' };
}

/** Bytes of a text in UTF-8. */
export function utf8Length(text: string): number {
  let bytes = 0;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    bytes += unit < 0x80 ? 1 : unit < 0x800 ? 2 : unit >= 0xd800 && unit < 0xdc00 ? 4 : unit >= 0xdc00 && unit < 0xe000 ? 0 : 3;
  }
  return bytes;
}

/** Calls of a step that have no result yet, in call order. */
export function openCalls(calls: readonly IntendedCall[], results: readonly CallResult[]): IntendedCall[] {
  const done = new Set(results.map(({ callId }) => callId));
  return calls.filter(({ callId }) => !done.has(callId));
}

/** The newest messages that fit, oldest first, and where older ones begin. */
export interface Window {
  readonly messages: readonly TapeMessage[];
  readonly more: boolean;
  readonly before: number | null;
}
