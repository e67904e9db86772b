import { randomUUID } from 'node:crypto';
import type { CallResult, Said, TapeMessage } from '@ambit/worker';

/**
 * Stands where your model library goes: it follows the message to the letter. Lines `use <tool> with <json>` are calls,
 * a blank line ends a step. It keeps nothing: what it says next is read off the tape, so a resumed run goes on.
 */
export function literalModel(messages: readonly TapeMessage[]): Said {
  const request = messages.findLastIndex((message) => message.role === 'user');
  const since = messages.slice(request + 1);
  const steps = scriptOf(messages[request]);
  const calls = steps[since.filter((message) => message.role === 'assistant').length] ?? [];
  if (calls.length > 0) return { content: [], calls: calls.map((call) => ({ callId: randomUUID(), ...call })), stop: 'tool_use' };
  const results = since.flatMap((message) => (message.role === 'tool' ? message.results : []));
  return { content: [{ type: 'text', text: ['Done.', ...results.map(sentence)].join('\n') }], stop: 'end_turn' };
}

function scriptOf(message: TapeMessage | undefined): { name: string; arguments: string }[][] {
  if (message === undefined || message.role === 'tool') return [];
  const text = message.content.map((block) => (typeof block.text === 'string' ? block.text : '')).join('\n');
  return text
    .split(/\n\s*\n/)
    .map((step) => [...step.matchAll(/^use (\S+)(?: with (.+))?$/gm)].map(([, name = '', json = '{}']) => ({ name, arguments: json })))
    .filter((step) => step.length > 0);
}

function sentence(result: CallResult): string {
  const text = result.content?.map((block) => (typeof block.text === 'string' ? block.text : `[${block.type}]`)).join(' ');
  return `- ${result.status}: ${result.fault === undefined ? (text ?? '').slice(0, 200) : `${result.fault.code}: ${result.fault.message}`}`;
}
