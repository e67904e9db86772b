import { Agent, request, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';

const AT_ONCE = 20;
const PROTOCOL = '2025-11-25';
const params = { protocolVersion: PROTOCOL, capabilities: {}, clientInfo: { name: 'gone', version: '1' } };
const INITIALIZE = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });

/** Opens so many sessions, each at the next address, and comes back to none of them; one in a hundred opens its stream and breaks off. */
export async function abandonSessions(addresses: readonly string[], token: string, sessions: number): Promise<void> {
  // Thousands of them: what a client costs that does more than this would be most of the time.
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  let next = 0;
  const abandonInTurn = async (): Promise<void> => {
    while (next < sessions) {
      const index = next++;
      const address = addresses[index % addresses.length] ?? '';
      const opened = await send(address, { method: 'POST', agent, headers }, INITIALIZE);
      const session = opened.headers['mcp-session-id'];
      const said = await text(opened);
      if (opened.statusCode !== 200 || typeof session !== 'string') throw new Error(`no session: ${opened.statusCode} ${said}`);
      if (index % 100 !== 0) continue;
      const more = { accept: 'text/event-stream', 'mcp-session-id': session, 'mcp-protocol-version': PROTOCOL };
      (await send(address, { method: 'GET', headers: { ...headers, ...more } })).destroy();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, abandonInTurn));
  agent.destroy();
}

function send(address: string, options: Parameters<typeof request>[1], body?: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request(address, options, resolve).once('error', reject).end(body);
  });
}
