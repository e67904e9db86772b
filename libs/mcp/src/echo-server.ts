import type { Transport } from '@modelcontextprotocol/client';

const TOOLS = [
  {
    name: 'echo',
    description: 'Answers with the text it was given',
    inputSchema: { type: 'object', properties: { text: { type: 'string', description: 'What to answer with' } }, required: ['text'] },
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
];
const METHOD_NOT_FOUND = -32_601;

type Json = Record<string, unknown>;

function isRecord(value: unknown): value is Json {
  return typeof value === 'object' && value !== null;
}

function call(params: unknown): Json {
  const { name, arguments: given } = isRecord(params) ? params : {};
  const said = isRecord(given) ? given['text'] : undefined;
  if (name === 'echo' && typeof said === 'string') return { content: [{ type: 'text', text: said }] };
  return { content: [{ type: 'text', text: 'There is one tool, echo, and it takes {"text": string}' }], isError: true };
}

function resultOf(method: string, params: unknown): Json | undefined {
  switch (method) {
    case 'tools/call':
      return call(params);
    case 'tools/list':
      return { tools: TOOLS };
    case 'initialize':
      return { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'echo', version: '1.0.0' } };
    case 'ping':
      return {};
    default:
      return undefined;
  }
}

/**
 * Serves the built-in `echo` server on a transport: one tool, no state, no I/O. For benchmarks, examples and first steps, so it
 * answers by hand: a server that measures the path to it should cost next to nothing itself.
 */
export function serveEcho(transport: Transport): void {
  transport.onmessage = (message) => {
    if (!('method' in message) || !('id' in message)) return;
    const { id, method, params } = message;
    const result = resultOf(method, params);
    const answer =
      result === undefined
        ? { jsonrpc: '2.0' as const, id, error: { code: METHOD_NOT_FOUND, message: 'Method not found' } }
        : { jsonrpc: '2.0' as const, id, result };
    transport.send(answer).catch(() => undefined);
  };
  void transport.start();
}
