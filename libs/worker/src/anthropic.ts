import { ContentBlock } from '@ambit/contracts';
import { z } from 'zod';
import type { TapeMessage } from './platform.js';
import { isFailure, resultText } from './result-text.js';
import type { Said } from './run.js';
import type { SnapshotView } from './snapshot.js';

/** What is read of a Messages API answer; the blocks are kept whole as `raw`, so that signed thinking survives a pause. */
const Message = z.looseObject({
  content: z.array(ContentBlock),
  stop_reason: z.string().nullish(),
  model: z.string().default(''),
  usage: z.looseObject({ input_tokens: z.int(), output_tokens: z.int() }).optional(),
});
const ToolUse = z.looseObject({ type: z.literal('tool_use'), id: z.string(), name: z.string(), input: z.unknown() });

/** The formats of Anthropic's Messages API: `messages.create({ ..., tools: format.tools, messages: format.messages(turn.messages) })`. */
export function anthropic(snapshot: SnapshotView) {
  return {
    tools: snapshot.tools.map((tool) => ({
      name: tool.name,
      description: tool.description,
      input_schema: { type: 'object' as const, ...tool.inputSchema },
    })),
    messages: (messages: readonly TapeMessage[]) => messages.filter((message) => message.role !== 'system').map(toAnthropic),
    said: (answer: unknown): Said => {
      const { content, stop_reason, model, usage } = Message.parse(answer);
      const calls = content.flatMap((block) => {
        const use = ToolUse.safeParse(block);
        return use.success ? [{ callId: use.data.id, name: use.data.name, arguments: JSON.stringify(use.data.input ?? {}) }] : [];
      });
      return {
        content: content.filter((block) => block.type === 'text'),
        calls,
        stop: stop_reason ?? null,
        raw: { role: 'assistant', content },
        usage:
          usage === undefined ? null : { provider: 'anthropic', model, inputTokens: usage.input_tokens, outputTokens: usage.output_tokens },
      };
    },
  };
}

function toAnthropic(message: TapeMessage): { role: 'user' | 'assistant'; content: unknown } {
  if (message.role !== 'tool') {
    const role = message.role === 'assistant' ? 'assistant' : 'user';
    const raw = z.object({ content: z.unknown() }).safeParse(message.raw);
    return { role, content: raw.success ? raw.data.content : message.content };
  }
  return {
    role: 'user',
    content: message.results.map((result) => ({
      type: 'tool_result',
      tool_use_id: result.callId,
      content: resultText(result),
      is_error: isFailure(result),
    })),
  };
}
