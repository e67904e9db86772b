import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Egress } from '@ambit/egress';
import { afterEach, expect, it } from '@jest/globals';
import { WebhookSender } from './webhook.sender.js';

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

async function listen(answer: RequestListener): Promise<number> {
  server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}
const LOOPBACK = ['127.0.0.0/8', '::1/128'];
const message = (url: string) => ({ url, headers: { 'content-type': 'application/json' }, body: '{"a":"ä"}' });
const send = (url: string, allowed = LOOPBACK, withinMs = 5_000) => new WebhookSender(new Egress(allowed), { withinMs }).send(message(url));

it('posts the whole body, and takes any 2xx', async () => {
  let heard = '';
  const port = await listen((request, response) => {
    request.on('data', (part) => (heard += `${request.method} ${request.headers['content-type']} ${String(part)}`));
    request.on('end', () => response.writeHead(202).end());
  });
  expect(await send(`http://127.0.0.1:${port}/`)).toBeUndefined();
  expect(heard).toBe('POST application/json {"a":"ä"}');
});

it('follows nobody elsewhere', async () => {
  const asked: (string | undefined)[] = [];
  const port = await listen((request, response) => {
    asked.push(request.url);
    response.writeHead(307, { location: '/elsewhere' }).end();
  });
  expect(await send(`http://127.0.0.1:${port}/here`)).toBe('it answered 307; redirects are not followed');
  expect(asked).toEqual(['/here']);
});

it('reads nothing of an answer but its status, and waits no longer than it may', async () => {
  const port = await listen((request, response) => {
    if (request.url === '/silent') return;
    response.writeHead(500);
    const more = (): void => {
      while (!response.destroyed && response.write('x'.repeat(64 * 1024)));
    };
    response.on('drain', more);
    more();
  });
  expect(await send(`http://127.0.0.1:${port}/endless`)).toBe('it answered 500');
  expect(await send(`http://127.0.0.1:${port}/silent`, LOOPBACK, 100)).toBe('it did not answer within 0.1 s');
});

it('connects to no closed address, by number or by a name that leads there', async () => {
  let isAsked = false;
  const port = await listen((_request, response) => {
    isAsked = true;
    response.end();
  });
  for (const host of ['127.0.0.1', 'localhost', '169.254.169.254', '[::1]'])
    expect(await send(`http://${host}:${port}/`, [])).toContain('AMBIT_EGRESS_ALLOW');
  expect(isAsked).toBe(false);
});

it('says why nobody was reached', async () => {
  const port = await listen(() => undefined);
  server?.close();
  expect(await send(`http://localhost:${port}/`)).toContain('ECONNREFUSED');
});
