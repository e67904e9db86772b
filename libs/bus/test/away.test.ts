import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { startNats, until, type TestNats } from '@ambit/testing';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { Bus, connectBus, Responder, silentLog } from '../src/index.js';
import { notes } from './fixture.js';

let nats: TestNats;
beforeAll(async () => {
  nats = await startNats({ streams: false });
});
afterAll(() => nats.stop());

/** The way of one client to the server, which can be closed for a while. */
class Way {
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  port = 0;

  constructor(target: URL) {
    this.#server = createServer((near) => {
      const far = connect(Number(target.port), target.hostname);
      for (const socket of [near, far]) {
        this.#sockets.add(socket);
        socket.on('error', () => undefined);
        socket.on('close', () => [near, far].forEach((one) => one.destroy()));
      }
      near.pipe(far).pipe(near);
    });
  }

  async open(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.port, '127.0.0.1', resolve));
    this.port = (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}

it('what is asked while the connection is away is asked when it is back', async () => {
  const responder = new Responder({ connection: nats.connection, log: silentLog, drainMs: 50 });
  responder.answer(notes.writeNote, ({ text }, call) => ({ folder: call.keys.folder, version: text.length }));
  await nats.connection.flush();
  const way = new Way(new URL(nats.url));
  await way.open();
  const connection = await connectBus({ url: `nats://127.0.0.1:${way.port}`, name: 'away' });
  const bus = new Bus(connection);
  const seen: string[] = [];
  void (async () => {
    for await (const { type } of connection.status()) seen.push(type);
  })();
  await way.close();
  await until(() => seen.includes('disconnect'));

  // Neither may be sent twice by the bus, and both are answered.
  const written = bus.call(notes.writeNote, { id: 'a', text: 'four' }, { keys: { folder: 'f' }, timeoutMs: 8_000 });
  const asked = connection.request('ambit.test.nobody', '', { timeout: 8_000 });
  const refused = expect(asked).rejects.toThrow(/no responders/i);
  const late = bus.call(notes.writeNote, { id: 'b', text: '' }, { keys: { folder: 'f' }, timeoutMs: 50 });
  await expect(late).rejects.toMatchObject({ code: 'TIMEOUT' });
  await until(() => seen.includes('reconnecting'));
  await way.open();
  expect(await written).toEqual({ folder: 'f', version: 4 });
  await refused;

  bus.close();
  await connection.close();
  await way.close();
  await responder.close();
});
