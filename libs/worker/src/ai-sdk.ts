import { z } from 'zod';
import type { TapeMessage } from './platform.js';
import { resultText } from './result-text.js';
import type { Said } from './run.js';
import type { SnapshotView } from './snapshot.js';

/** What is read of a `generateText` or `streamText` result; each field may still be a promise. */
interface Answer {
  readonly text: PromiseLike<string> | string;
  readonly toolCalls: PromiseLike<readonly ToolCall[]> | readonly ToolCall[];
  readonly finishReason: PromiseLike<string> | string;
  readonly usage: PromiseLike<Tokens> | Tokens;
}
interface ToolCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
}
interface Tokens {
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
}
const Raw = z.object({
  content: z.array(z.looseObject({ type: z.string(), toolCallId: z.string().optional(), toolName: z.string().optional() })),
});

/** The AI SDK knows a JSON Schema by this mark; it is the whole of what its jsonSchema() adds. */
const SCHEMA = Symbol.for('vercel.ai.schema');

/** The formats of the AI SDK: tools without `execute`, since the gateway executes a whole batch. */
export function aiSdk(snapshot: SnapshotView) {
  const tools: Record<string, { readonly description: string; readonly inputSchema: object }> = {};
  for (const tool of snapshot.tools)
    tools[tool.name] = {
      description: tool.description,
      inputSchema: { [SCHEMA]: true, _type: undefined, validate: undefined, jsonSchema: { type: 'object', ...tool.inputSchema } },
    };
  return {
    tools,
    messages: (messages: readonly TapeMessage[]) => {
      const names = namesOf(messages);
      return messages.map((message) => toAiSdk(message, names));
    },
    said: async (answer: Answer, model = ''): Promise<Said> => {
      const [text, toolCalls, stop, usage] = await Promise.all([answer.text, answer.toolCalls, answer.finishReason, answer.usage]);
      const calls = toolCalls.map((call) => ({
        callId: call.toolCallId,
        name: call.toolName,
        arguments: JSON.stringify(call.input ?? {}),
      }));
      const content = [
        ...(text === '' ? [] : [{ type: 'text', text }]),
        ...toolCalls.map(({ toolCallId, toolName, input }) => ({ type: 'tool-call', toolCallId, toolName, input: input ?? {} })),
      ];
      return {
        content: text === '' ? [] : [{ type: 'text', text }],
        calls,
        stop,
        raw: { role: 'assistant', content },
        usage: { provider: 'ai-sdk', model, inputTokens: usage.inputTokens ?? 0, outputTokens: usage.outputTokens ?? 0 },
      };
    },
  };
}

/** Results carry call ids alone; the AI SDK wants the tool's name beside each. */
function namesOf(messages: readonly TapeMessage[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const message of messages) {
    const raw = message.role === 'tool' ? undefined : Raw.safeParse(message.raw).data;
    for (const part of raw?.content ?? [])
      if (part.toolCallId !== undefined && part.toolName !== undefined) names.set(part.toolCallId, part.toolName);
  }
  return names;
}

function toAiSdk(message: TapeMessage, names: ReadonlyMap<string, string>): Readonly<Record<string, unknown>> {
  if (message.role === 'tool') {
    return {
      role: 'tool',
      content: message.results.map((result) => ({
        type: 'tool-result',
        toolCallId: result.callId,
        toolName: names.get(result.callId) ?? 'unknown',
        output: { type: result.status === 'completed' ? 'text' : 'error-text', value: resultText(result) },
      })),
    };
  }
  const raw = Raw.safeParse(message.raw);
  if (message.role === 'assistant' && raw.success) return { role: 'assistant', content: raw.data.content };
  const text = message.content.map((block) => (typeof block.text === 'string' ? block.text : `[${block.type}]`)).join('\n');
  return message.role === 'system' ? { role: 'system', content: text } : { role: message.role, content: [{ type: 'text', text }] };
}
