import { expect, it } from '@jest/globals';
import { generateText, type ModelMessage, type ToolSet } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { aiSdk } from './ai-sdk.js';
import { anthropic } from './anthropic.js';
import { openai } from './openai.js';
import type { Said } from './run.js';
import type { SnapshotView } from './snapshot.js';
import { testRun } from './testing.js';

const add = {
  name: 'add',
  description: 'Adds',
  inputSchema: { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] },
  run: (input: Readonly<Record<string, unknown>>) => [{ type: 'text', text: String(Number(input.a) + 1) }],
};

interface Format {
  readonly name: string;
  /** One sampling: a call of `add` first, then a text that quotes what came back. */
  readonly sample: (snapshot: SnapshotView, messages: Parameters<ReturnType<typeof openai>['messages']>[0]) => Promise<Said>;
}

const quote = (messages: unknown) => JSON.stringify(messages);

const formats: Format[] = [
  {
    name: 'anthropic',
    sample: async (snapshot, messages) => {
      const format = anthropic(snapshot);
      const sent = format.messages(messages);
      const first = sent.length === 1;
      expect(format.tools[0]).toMatchObject({ name: 'add', input_schema: { type: 'object', required: ['a'] } });
      if (!first)
        expect(sent.slice(1)).toMatchObject([
          {
            role: 'assistant',
            content: [
              { type: 'thinking', signature: 'signed' },
              { type: 'tool_use', id: 'c1' },
            ],
          },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: '3', is_error: false }] },
        ]);
      const content = first
        ? [
            { type: 'thinking', signature: 'signed' },
            { type: 'tool_use', id: 'c1', name: 'add', input: { a: 2 } },
          ]
        : [{ type: 'text', text: quote(sent) }];
      return format.said({
        content,
        stop_reason: first ? 'tool_use' : 'end_turn',
        model: 'm',
        usage: { input_tokens: 1, output_tokens: 2 },
      });
    },
  },
  {
    name: 'openai',
    sample: async (snapshot, messages) => {
      const format = openai(snapshot);
      const sent = format.messages(messages);
      const first = sent.length === 1;
      expect(format.tools[0]).toMatchObject({ type: 'function', function: { name: 'add', parameters: { required: ['a'] } } });
      if (!first)
        expect(sent.slice(1)).toMatchObject([
          { role: 'assistant', tool_calls: [{ id: 'c1' }] },
          { role: 'tool', tool_call_id: 'c1', content: '3' },
        ]);
      const message = first
        ? { content: null, tool_calls: [{ id: 'c1', type: 'function', function: { name: 'add', arguments: '{"a":2}' } }] }
        : { content: quote(sent) };
      return format.said({ model: 'm', choices: [{ finish_reason: 'stop', message }], usage: { prompt_tokens: 1, completion_tokens: 2 } });
    },
  },
  {
    name: 'ai-sdk',
    sample: async (snapshot, messages) => {
      const format = aiSdk(snapshot);
      const sent = format.messages(messages);
      const usage = {
        inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 2, text: 2, reasoning: 0 },
      };
      const model = new MockLanguageModelV3({
        doGenerate: async ({ prompt, tools }) => {
          expect(tools?.[0]).toMatchObject({ type: 'function', name: 'add', inputSchema: { type: 'object', required: ['a'] } });
          const first = prompt.length === 1;
          const content = first
            ? [{ type: 'tool-call' as const, toolCallId: 'c1', toolName: 'add', input: '{"a":2}' }]
            : [{ type: 'text' as const, text: quote(prompt) }];
          return {
            content,
            finishReason: { unified: first ? ('tool-calls' as const) : ('stop' as const), raw: undefined },
            usage,
            warnings: [],
          };
        },
      });
      return format.said(await generateText({ model, tools: format.tools as ToolSet, messages: sent as unknown as ModelMessage[] }));
    },
  },
];

it.each(formats)('$name: a call goes out, its result comes back, and what the model said is kept whole', async ({ sample }) => {
  const result = await testRun(
    async (run) => {
      for await (const turn of run.turns()) await turn.say(await sample(run.snapshot, turn.messages));
    },
    { tools: [add] },
  );
  expect(result.status).toBe('completed');
  expect(result.executed).toEqual([{ name: 'add', arguments: { a: 2 } }]);
  expect(quote(result.messages.at(-1))).toContain('3');
});
