import { Server } from '@modelcontextprotocol/server';
import type { Transport } from '@modelcontextprotocol/client';

const TOOLS = [
  {
    name: 'echo',
    description: 'Answers with the text it was given',
    inputSchema: {
      type: 'object' as const,
      properties: { text: { type: 'string', description: 'What to answer with' } },
      required: ['text'],
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
];

/** Serves the built-in `echo` server on a transport: one tool, no state, no I/O. For benchmarks, examples and first steps. */
export function serveEcho(transport: Transport): void {
  const server = new Server({ name: 'echo', version: '1.0.0' }, { capabilities: { tools: {} } });
  server.setRequestHandler('tools/list', () => ({ tools: TOOLS }));
  server.setRequestHandler('tools/call', (request) => {
    const said = request.params.arguments?.['text'];
    if (request.params.name !== 'echo' || typeof said !== 'string')
      return { content: [{ type: 'text' as const, text: 'There is one tool, echo, and it takes {"text": string}' }], isError: true };
    return { content: [{ type: 'text' as const, text: said }] };
  });
  void server.connect(transport);
}
