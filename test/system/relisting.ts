import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An MCP server over HTTP whose list is whatever text it was given last. */
export async function relisting(): Promise<{ readonly url: string; list(tools: string): void; close(): void }> {
  let tools = '[]';
  const server = createServer(async (request, response) => {
    if (request.method !== 'POST') return response.writeHead(405).end();
    let text = '';
    for await (const part of request.setEncoding('utf8')) text += String(part);
    const { id, method } = JSON.parse(text) as { id?: number | string; method: string };
    if (id === undefined) return response.writeHead(202).end();
    const says = (part: string): unknown =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},${part}}`);
    if (method === 'initialize')
      return says('"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"relisting","version":"1"}}');
    if (method === 'tools/list') return says(`"result":{"tools":${tools}}`);
    return says('"error":{"code":-32601,"message":"Method not found"}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    list: (text) => void (tools = text),
    close: () => server.close().closeAllConnections(),
  };
}
