import type { Asks, AsksQuestion } from '@ambit/capability';
import {
  platformFaults,
  refusals,
  type CallResult,
  type ContentBlock,
  type FaultBody,
  type FaultDef,
  type Outcome,
} from '@ambit/contracts';

/** What a tool gave, in the shape that MCP uses. */
export interface ToolResult {
  readonly content: ContentBlock[];
  readonly structuredContent?: unknown;
  readonly isError: boolean;
}

/** How a dispatch ended: with the tool's own answer, or with why there is none. */
export type DispatchEnd =
  | { readonly kind: 'answered'; readonly result: ToolResult }
  /** In place of an answer: the tool needs a permission first, and proves that it has done nothing yet. */
  | {
      readonly kind: 'asked';
      readonly reason: string;
      /** A sign-in by the principal, which no mode can stand in for. */ readonly signIn?: boolean;
    }
  | { readonly kind: 'stopped'; readonly status: Exclude<Outcome['status'], 'completed'>; readonly fault: FaultBody };

/** How one call of a batch stands. */
export type CallEnd =
  | { readonly kind: 'outcome'; readonly outcome: Outcome; readonly whole?: ToolResult | undefined }
  | {
      readonly kind: 'refused';
      readonly fault: FaultBody;
      readonly gate: string;
      readonly detail: string | undefined;
      readonly rule: string | null;
    }
  | ({ readonly kind: 'asks' } & Asks)
  | ({ readonly kind: 'asks-question' } & AsksQuestion);

const MESSAGE_MAX = 2_000;
const DATA_MAX = 4_096;

function definition(code: string): FaultDef | undefined {
  const all: Readonly<Record<string, FaultDef>> = { ...platformFaults, ...refusals };
  return Object.hasOwn(all, code) ? all[code] : undefined;
}

/** A fault inside a result: the declared message where none is given, bounded. */
export function faultBody(code: string, data?: unknown, message?: string): FaultBody {
  const text = (message ?? definition(code)?.message ?? code).slice(0, MESSAGE_MAX);
  const isSmall = data !== undefined && JSON.stringify(data).length <= DATA_MAX;
  return isSmall ? { code, message: text, data } : { code, message: text };
}

/** A call that ended without the tool's answer. */
export function stopped(
  status: Exclude<Outcome['status'], 'completed'>,
  code: string,
  more: { readonly data?: unknown; readonly message?: string } = {},
): DispatchEnd {
  return { kind: 'stopped', status, fault: faultBody(code, more.data, more.message) };
}

const NOT_SENT: ReadonlySet<string> = new Set(['SERVER_UNAVAILABLE', 'TARGET_CHANGED', 'TOOL_GONE', 'AUTHORIZATION_REQUIRED']);

/** How a call ends whose tool asks where nobody is to be asked any more. */
export function askedTooLate(reason: string): DispatchEnd {
  return stopped('failed', 'TOOL_FAILED', { data: { reason: `it asked for a permission when it was already called: ${reason}` } });
}

/** Whether whoever stands behind the tool said that the call never reached it. */
export function wasNotSent(end: DispatchEnd): boolean {
  return end.kind === 'stopped' && end.status === 'failed' && NOT_SENT.has(end.fault.code);
}

/** The text of a result's blocks, or its JSON where it has none. */
export function textOf(result: Pick<ToolResult, 'content' | 'structuredContent'>): string {
  const texts = result.content.flatMap((block) => (typeof block['text'] === 'string' ? [block['text']] : []));
  return texts.length > 0 ? texts.join('\n') : JSON.stringify(result.structuredContent ?? result.content);
}

/** What the model is shown of a result that does not fit: its size, its beginning, and where the whole is. */
export function stubText(text: string, bytes: number, digest: string | undefined): string {
  const where =
    digest === undefined
      ? 'It was left out because the results of this batch are too large together.'
      : `The whole is artifact ${digest}; read on with artifact_read.`;
  return `The result has ${bytes} bytes. It begins:\n${text.slice(0, 1_024)}\n\n${where}`;
}

/** The result that stands in a batch's answer for an outcome, with the whole content where it is at hand. */
export function resultOf(callId: string, outcome: Outcome, whole?: ToolResult): CallResult {
  const content = whole?.content ?? outcome.content;
  const structuredContent = whole === undefined ? outcome.structuredContent : whole.structuredContent;
  return {
    callId,
    status: outcome.status,
    ...(content === undefined ? {} : { content }),
    ...(structuredContent === undefined ? {} : { structuredContent }),
    ...(outcome.artifact === undefined ? {} : { artifact: outcome.artifact }),
    ...(outcome.fault === undefined ? {} : { fault: outcome.fault }),
  };
}
