import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { z } from 'zod';

const Request = z.object({
  id: z.union([z.string(), z.number()]).optional(),
  method: z.string(),
  params: z.looseObject({ name: z.string().optional(), arguments: z.record(z.string(), z.unknown()).optional() }).optional(),
});

export interface Upstream {
  readonly url: string;
  stop(): void;
}

/** An MCP server over Streamable HTTP in this process with one tool, `say`, which answers its argument `letters` times one letter. */
export async function startUpstream(): Promise<Upstream> {
  const session = randomUUID();
  const server = createServer((request, response) => {
    void read(request).then((body) => {
      if (body === undefined) return response.writeHead(405).end();
      const { id, method, params } = body;
      const answer = (part: object): void =>
        void response
          .writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': session })
          .end(JSON.stringify({ jsonrpc: '2.0', id, ...part }));
      switch (method) {
        case 'initialize':
          return answer({
            result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'upstream', version: '1' } },
          });
        case 'tools/list':
          return answer({ result: { tools: [{ name: 'say', inputSchema: { type: 'object' } }] } });
        case 'tools/call':
          return answer({ result: { content: [{ type: 'text', text: 'x'.repeat(Number(params?.arguments?.['letters'] ?? 1)) }] } });
        default:
          return id === undefined ? response.writeHead(202).end() : answer({ error: { code: -32_601, message: 'Method not found' } });
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the upstream listens on no port');
  return { url: `http://127.0.0.1:${address.port}/mcp`, stop: () => void server.close().closeAllConnections() };
}

async function read(request: IncomingMessage): Promise<z.output<typeof Request> | undefined> {
  if (request.method !== 'POST') return undefined;
  let text = '';
  for await (const part of request.setEncoding('utf8')) text += String(part);
  return Request.parse(JSON.parse(text));
}
