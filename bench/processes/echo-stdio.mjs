// The MCP server that both ways to stdio are measured with: one tool, no state, no I/O.
import { Server } from '@modelcontextprotocol/server';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';

const server = new Server({ name: 'bench-echo', version: '1.0.0' }, { capabilities: { tools: {} } });
server.setRequestHandler('tools/list', () => ({
  tools: [{ name: 'echo', inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] } }],
}));
server.setRequestHandler('tools/call', (request) => ({
  content: [{ type: 'text', text: String(request.params.arguments?.text) }],
}));
await server.connect(new StdioServerTransport());
