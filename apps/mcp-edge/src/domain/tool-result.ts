import type { CallResult } from '@ambit/contracts';
import type { Json } from './json-rpc.js';

/** Whether a result is only the beginning of a large one, which stands in its artifact. */
export function isExcerpt({ artifact, content }: CallResult): boolean {
  if (artifact === undefined || content?.length !== 1) return false;
  const text = content[0]?.['text'];
  return content[0]?.type === 'text' && typeof text === 'string' && text.includes(artifact.digest);
}

/** A call's end as `tools/call` answers it: what a tool says of its own failure is a result, and so is a refusal, because the model has to read it. */
export function toolResult({ status, content, structuredContent, fault }: CallResult): Json {
  const isError = status !== 'completed';
  const words = fault === undefined ? `The call ended as ${status}` : `${fault.code}: ${fault.message}${reasonIn(fault.data)}`;
  return {
    content: content ?? [{ type: 'text', text: words }],
    ...(structuredContent === undefined ? {} : { structuredContent }),
    ...(isError ? { isError: true } : {}),
  };
}

function reasonIn(data: unknown): string {
  return typeof data === 'object' && data !== null && 'reason' in data && typeof data.reason === 'string' ? ` (${data.reason})` : '';
}
