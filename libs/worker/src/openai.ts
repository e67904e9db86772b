import { z } from 'zod';
import type { TapeMessage } from './platform.js';
import { resultText } from './result-text.js';
import type { Said } from './run.js';
import type { SnapshotView } from './snapshot.js';

/** What is read of a chat completion; the message is kept whole as `raw`. */
const Completion = z.looseObject({
  model: z.string().default(''),
  choices: z
    .array(
      z.looseObject({
        finish_reason: z.string().nullish(),
        message: z.looseObject({
          content: z.string().nullish(),
          tool_calls: z.array(z.looseObject({ id: z.string(), function: z.object({ name: z.string(), arguments: z.string() }) })).nullish(),
        }),
      }),
    )
    .min(1),
  usage: z.looseObject({ prompt_tokens: z.int(), completion_tokens: z.int() }).nullish(),
});

/** The formats of OpenAI's chat completions: `chat.completions.create({ ..., tools: format.tools, messages: format.messages(turn.messages) })`. */
export function openai(snapshot: SnapshotView) {
  return {
    tools: snapshot.tools.map((tool) => ({
      type: 'function' as const,
      function: { name: tool.name, description: tool.description, parameters: tool.inputSchema },
    })),
    messages: (messages: readonly TapeMessage[]) => messages.flatMap(toOpenai),
    said: (answer: unknown): Said => {
      const { choices, model, usage } = Completion.parse(answer);
      const [choice] = choices;
      const text = choice?.message.content ?? '';
      return {
        content: text === '' ? [] : [{ type: 'text', text }],
        calls: (choice?.message.tool_calls ?? []).map((call) => ({
          callId: call.id,
          name: call.function.name,
          arguments: call.function.arguments,
        })),
        stop: choice?.finish_reason ?? null,
        raw: choice?.message,
        usage: usage ? { provider: 'openai', model, inputTokens: usage.prompt_tokens, outputTokens: usage.completion_tokens } : null,
      };
    },
  };
}

function toOpenai(message: TapeMessage): Readonly<Record<string, unknown>>[] {
  if (message.role === 'tool')
    return message.results.map((result) => ({ role: 'tool', tool_call_id: result.callId, content: resultText(result) }));
  if (message.role === 'assistant' && typeof message.raw === 'object' && message.raw !== null)
    return [{ role: 'assistant', ...message.raw }];
  return [
    {
      role: message.role,
      content: message.content.map((block) => (typeof block.text === 'string' ? block.text : `[${block.type}]`)).join('\n'),
    },
  ];
}
