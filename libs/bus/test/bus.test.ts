import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { fault, Fault, platformFault, type Rpc } from '@ambit/contracts';
import { startNats, type TestNats } from '@ambit/testing';
import { headers } from '@nats-io/nats-core';
import { once } from 'node:events';
import { createConnection, createServer } from 'node:net';
import { Bus, connectBus, Responder, silentLog, type AnswerHandler } from '../src/index.js';
import { ALICE, notes } from './fixture.js';

let nats: TestNats;
const logged: object[] = [];

beforeAll(async () => {
  nats = await startNats({ streams: false });
});
afterAll(() => nats.stop());

interface Served {
  readonly responder: Responder;
}

/** Answers while `use` runs. */
async function serving(set: (responder: Responder) => void, use: (served: Served) => Promise<void>): Promise<void> {
  const log = { ...silentLog, error: (fields: object) => void logged.push(fields) };
  const responder = new Responder({ connection: nats.connection, log, drainMs: 50 });
  set(responder);
  await nats.connection.flush();
  try {
    await use({ responder });
  } finally {
    await responder.close();
  }
}
const answering = <C extends Rpc>(contract: C, handler: AnswerHandler<C>, use: (served: Served) => Promise<void>): Promise<void> =>
  serving((responder) => void responder.answer(contract, handler), use);

const GET = notes.getNote.subject;
const echo: AnswerHandler<typeof notes.getNote> = ({ id }) => ({ id, text: 'hello' });
const never = (): Promise<never> => new Promise(() => undefined);
const refusal = (promise: Promise<unknown>): Promise<Fault> =>
  promise.then(
    () => Promise.reject(new Error('nothing was refused')),
    (error: unknown) => (error instanceof Fault ? error : Promise.reject(error)),
  );

it('answers plain JSON with plain JSON, by hand', () =>
  answering(notes.getNote, echo, async () => {
    const answer = await nats.connection.request(GET, '{"id":"a"}');
    expect(answer.json()).toEqual({ id: 'a', text: 'hello' });
    expect(answer.headers).toBeUndefined();
  }));

it('gives the handler its keys, its time and who it is for', () =>
  answering(
    notes.writeNote,
    async (input, call) => {
      // Read late on purpose: what is lazily parsed must still be there.
      await new Promise((resolve) => setImmediate(resolve));
      expect(call.principal).toEqual(ALICE);
      expect(call.remainingMs()).toBeGreaterThan(0);
      expect(call.remainingMs()).toBeLessThanOrEqual(3_000);
      expect(call.traceId).toMatch(/^[0-9a-f]{32}$/);
      return { folder: call.keys.folder, version: input.text.length };
    },
    async () => {
      const written = await nats.bus.call(
        notes.writeNote,
        { id: 'a', text: 'four' },
        { keys: { folder: 'a.b *' }, principal: ALICE, timeoutMs: 3_000 },
      );
      expect(written).toEqual({ folder: 'a.b *', version: 4 });
    },
  ));

it('hands a request’s trace, identity and remaining time on to the calls made within it', () =>
  serving(
    (responder) => {
      responder.answer(notes.writeNote, (_input, call) => {
        expect(call.principal).toEqual(ALICE);
        expect(call.remainingMs()).toBeLessThanOrEqual(3_000);
        return { folder: call.traceId, version: 1 };
      });
      responder.answer(notes.getNote, async (_input, call) => {
        const inner = await nats.bus.call(
          notes.writeNote,
          { id: 'a', text: '' },
          { keys: { folder: 'f' }, within: call, timeoutMs: 10_000 },
        );
        return { id: inner.folder, text: call.traceId };
      });
    },
    async () => {
      const { id, text } = await nats.bus.call(notes.getNote, { id: 'a' }, { principal: ALICE, timeoutMs: 3_000 });
      expect(id).toBe(text);
    },
  ));

it('believes no identity on a subject that workers may publish to', () =>
  answering(
    notes.workerNote,
    (_input, call) => ({ principal: call.principal?.id ?? null }),
    async () =>
      expect(await nats.bus.call(notes.workerNote, {}, { keys: { agentId: 'a' }, principal: ALICE })).toEqual({ principal: null }),
  ));

it('carries a declared fault whole', () =>
  answering(
    notes.getNote,
    ({ id }) => {
      throw fault(notes.getNote, 'NOTE_NOT_FOUND', { id });
    },
    async () => {
      expect(await refusal(nats.bus.call(notes.getNote, { id: 'x' }))).toMatchObject({
        code: 'NOTE_NOT_FOUND',
        status: 404,
        retry: 'never',
        data: { id: 'x' },
      });
      const raw = await nats.connection.request(GET, '{"id":"x"}');
      expect(raw.headers?.get('Nats-Service-Error-Code')).toBe('404');
      expect(raw.headers?.get('Nats-Service-Error')).toBe('There is no such note');
      expect(raw.json()).toEqual({ code: 'NOTE_NOT_FOUND', message: 'There is no such note', data: { id: 'x' } });
    },
  ));

it('tells nothing of an undeclared error but a trace id, and logs it once', () =>
  answering(
    notes.getNote,
    () => {
      throw new Error('the password is hunter2');
    },
    async () => {
      logged.length = 0;
      const raw = await nats.connection.request(GET, '{"id":"x"}');
      expect(raw.string()).not.toContain('hunter2');
      expect(raw.json()).toEqual({
        code: 'INTERNAL',
        message: expect.any(String),
        data: { traceId: expect.stringMatching(/^[0-9a-f]{32}$/) },
      });
      expect(logged).toHaveLength(1);
    },
  ));

it('lets no undeclared fault, and no declared one with other data, out of a service', async () => {
  const undeclared = new Fault('SOMEBODY_ELSES', { status: 409, retry: 'never', message: 'no' });
  const wrongData = new Fault('NOTE_NOT_FOUND', notes.getNote.errors.NOTE_NOT_FOUND, { id: 7 });
  const prototype = new Fault('constructor', { status: 409, retry: 'never', message: 'no' });
  for (const error of [undeclared, wrongData, prototype]) {
    await answering(
      notes.getNote,
      () => {
        throw error;
      },
      async () => expect(await refusal(nats.bus.call(notes.getNote, { id: 'x' }))).toMatchObject({ code: 'INTERNAL' }),
    );
  }
});

it('strips from a fault’s data what its declaration does not have', () =>
  answering(
    notes.getNote,
    () => {
      throw new Fault('NOTE_NOT_FOUND', notes.getNote.errors.NOTE_NOT_FOUND, { id: 'x', path: '/etc' });
    },
    async () => expect((await nats.connection.request(GET, '{"id":"x"}')).string()).not.toContain('/etc'),
  ));

it('never hands a handler bad input', async () => {
  let calls = 0;
  const counted: AnswerHandler<typeof notes.getNote> = ({ id }) => {
    calls++;
    return { id, text: '' };
  };
  await answering(notes.getNote, counted, async () => {
    for (const body of ['', '{"id":7}', '[]', 'not json', '{"id":"a"', new Uint8Array([0xff, 0xfe])]) {
      const raw = await nats.connection.request(GET, body);
      expect(raw.json()).toMatchObject({ code: 'INVALID_INPUT', data: { issues: [expect.anything()] } });
    }
    const large = await nats.connection.request(GET, JSON.stringify({ id: 'a', pad: 'x'.repeat(600_000) }));
    expect(large.json()).toMatchObject({ code: 'TOO_LARGE', data: { limitBytes: 524_288 } });
    expect(calls).toBe(0);
  });
});

it('sends nothing that is larger than anybody takes', async () => {
  expect(await refusal(nats.bus.call(notes.getNote, { id: 'x'.repeat(600_000) }))).toMatchObject({ code: 'TOO_LARGE' });
});

it('answers INTERNAL rather than another shape than the contract has', () =>
  answering(
    notes.getNote,
    () => JSON.parse('{"id":1}'),
    async () => expect(await refusal(nats.bus.call(notes.getNote, { id: 'x' }))).toMatchObject({ code: 'INTERNAL' }),
  ));

it('makes a nested call’s INVALID_INPUT its own mistake', () =>
  serving(
    (responder) => {
      responder.answer(notes.writeNote, () => Promise.reject(platformFault('INVALID_INPUT', { issues: [] })));
      responder.answer(notes.getNote, async (_input, call) => {
        await nats.bus.call(notes.writeNote, { id: 'a', text: '' }, { keys: { folder: 'f' }, within: call, timeoutMs: 10_000 });
        return { id: 'a', text: '' };
      });
    },
    async () => expect(await refusal(nats.bus.call(notes.getNote, { id: 'x' }))).toMatchObject({ code: 'INTERNAL' }),
  ));

it('says that nobody is there, and that nothing was done', async () => {
  expect(await refusal(nats.bus.call(notes.getNote, { id: 'x' }, { timeoutMs: 2_000 }))).toMatchObject({
    code: 'UNAVAILABLE',
    retry: 'later',
  });
});

it('repeats after a time-out only what is idempotent', async () => {
  const calls = { write: 0, get: 0 };
  await serving(
    (responder) => {
      responder.answer(notes.writeNote, () => (calls.write++, never()));
      responder.answer(notes.getNote, () => (calls.get++, never()));
    },
    async () => {
      expect(await refusal(nats.bus.call(notes.writeNote, { id: 'a', text: '' }, { keys: { folder: 'f' }, timeoutMs: 50 }))).toMatchObject({
        code: 'TIMEOUT',
        retry: 'never',
      });
      expect(await refusal(nats.bus.call(notes.getNote, { id: 'a' }))).toMatchObject({ code: 'TIMEOUT' });
      expect(calls).toEqual({ write: 1, get: 2 });
    },
  );
});

it('sends an idempotent call again where that is asked for: its receiver may have died', async () => {
  let asked = 0;
  let given = 0;
  await serving(
    (responder) =>
      responder.answer(notes.getNote, (_, call) => (asked++ === 0 ? never() : ((given = call.remainingMs()), { id: 'a', text: 'hello' }))),
    async () => {
      expect(await nats.bus.call(notes.getNote, { id: 'a' }, { timeoutMs: 30_000, eachMs: 100 })).toEqual({ id: 'a', text: 'hello' });
      expect(asked).toBe(2);
      expect(given).toBeGreaterThan(10_000);
    },
  );
});

it('waits out a moment without a responder', async () => {
  const asked = nats.bus.call(notes.getNote, { id: 'late' }, { timeoutMs: 2_000 });
  await answering(notes.getNote, echo, async () => expect(await asked).toEqual({ id: 'late', text: 'hello' }));
});

it('refuses a key that is empty, and escapes one that would change the subject', async () => {
  await expect(nats.bus.call(notes.writeNote, { id: 'a', text: '' }, { keys: { folder: '' } })).rejects.toThrow(TypeError);
});

it('stops waiting when its signal aborts', async () => {
  const abort = new AbortController();
  const cancel = (): Promise<never> => (abort.abort(platformFault('CANCELLED')), never());
  await answering(notes.writeNote, cancel, async () => {
    const asked = nats.bus.call(notes.writeNote, { id: 'a', text: '' }, { keys: { folder: 'f' }, signal: abort.signal, timeoutMs: 5_000 });
    expect(await refusal(asked)).toMatchObject({ code: 'CANCELLED' });
  });
});

it('aborts a handler’s signal when the caller’s time is up', async () => {
  const reason = new Promise<unknown>((resolve) => {
    void answering(
      notes.writeNote,
      (_input, call) => {
        call.signal.addEventListener('abort', () => resolve(call.signal.reason));
        return never();
      },
      async () => void (await refusal(nats.bus.call(notes.writeNote, { id: 'a', text: '' }, { keys: { folder: 'f' }, timeoutMs: 30 }))),
    );
  });
  expect(await reason).toMatchObject({ code: 'TIMEOUT' });
});

it('drops a request whose reply is no inbox', async () => {
  let calls = 0;
  const counted: AnswerHandler<typeof notes.getNote> = ({ id }) => (calls++, { id, text: '' });
  await answering(notes.getNote, counted, async ({ responder }) => {
    const heard: string[] = [];
    const target = notes.noteRead.subject;
    const forged = nats.connection.subscribe(target, { callback: (_error, message) => void heard.push(message.string()) });
    nats.connection.publish(GET, '{"id":"a"}', { reply: target });
    nats.connection.publish(GET, '{"id":"a"}');
    await nats.bus.call(notes.getNote, { id: 'after' });
    forged.unsubscribe();
    expect({ heard, calls }).toEqual({ heard: [], calls: 1 });
    expect(responder.endpoints[0]?.refusedReplies).toBe(2);
  });
});

it('loses no answer that was begun before close', async () => {
  const leaving = new Responder({ connection: nats.connection, log: silentLog });
  let finish: () => void = () => undefined;
  const begun = new Promise<void>((resolve) => {
    leaving.answer(notes.getNote, async ({ id }) => {
      resolve();
      await new Promise<void>((done) => (finish = done));
      return { id, text: 'kept' };
    });
  });
  await nats.connection.flush();
  const asked = nats.bus.call(notes.getNote, { id: 'a' }, { timeoutMs: 5_000 });
  await begun;
  const closed = leaving.close();
  finish();
  expect(await asked).toEqual({ id: 'a', text: 'kept' });
  await closed;
});

it('counts what async handlers throw', () =>
  answering(
    notes.getNote,
    async () => {
      await Promise.resolve();
      throw new Error('later');
    },
    async ({ responder }) => {
      await refusal(nats.bus.call(notes.getNote, { id: 'x' }));
      expect(responder.endpoints[0]).toMatchObject({ requests: 1, errors: 1, lastError: 'INTERNAL' });
    },
  ));

it('sends a signal to whoever listens to its keys, and to nobody else', async () => {
  let heard: (value: unknown) => void = () => undefined;
  const first = new Promise<unknown>((resolve) => (heard = resolve));
  await serving(
    (responder) => void responder.listen(notes.noteOpened, (payload, { keys }) => heard({ payload, keys }), { keys: { folder: 'a' } }),
    async () => {
      nats.bus.signal(notes.noteOpened, { by: 'bob' }, { keys: { folder: 'b' } });
      nats.bus.signal(notes.noteOpened, { by: 'alice' }, { keys: { folder: 'a' } });
      expect(await first).toEqual({ payload: { by: 'alice' }, keys: { folder: 'a' } });
    },
  );
});

it('does not read an answer of another shape, nor a fault that nobody declared', async () => {
  const bodies: readonly (readonly [string, string?])[] = [
    ['{"id":1}'],
    ['not json'],
    ['{"code":"toString","message":"x"}', '500'],
    ['{"code":"NOTE_NOT_FOUND","message":"x","data":{}}', '404'],
  ];
  for (const [body, status] of bodies) {
    const liar = nats.connection.subscribe(GET, {
      callback: (_error, message) => {
        const sent = headers();
        if (status !== undefined) sent.set('Nats-Service-Error-Code', status);
        message.respond(body, { headers: sent });
      },
    });
    expect(await refusal(nats.bus.call(notes.getNote, { id: 'x' }))).toMatchObject({ code: 'INTERNAL' });
    liar.unsubscribe();
  }
});

it('works on an inbox prefix of its own', async () => {
  const bus = new Bus(nats.connection, { inboxPrefix: '_INBOX.agent-a.laptop' });
  await answering(notes.getNote, echo, async () => expect(await bus.call(notes.getNote, { id: 'p' })).toEqual({ id: 'p', text: 'hello' }));
  bus.close();
});

it('what one turn publishes leaves in one piece, in order, and what was published before a close arrives', async () => {
  const writes: number[] = [];
  const proxy = createServer((incoming) => {
    const outgoing = createConnection(Number(new URL(nats.url).port));
    incoming.on('data', (chunk) => writes.push(chunk.toString('latin1').split('PUB gathered').length - 1));
    incoming.pipe(outgoing).pipe(incoming);
    for (const socket of [incoming, outgoing]) socket.on('error', () => socket.destroy());
  });
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  const address = proxy.address();
  const port = typeof address === 'object' ? address?.port : 0;
  const heard = nats.connection.subscribe('gathered', { max: 100 });
  await nats.connection.flush();
  const connection = await connectBus({ url: `nats://127.0.0.1:${port}`, name: 'gathering' });
  for (let index = 0; index < 99; index++) {
    connection.publish('gathered', String(index));
    // Each continuation would be a piece of its own where every publication is written at once.
    await Promise.resolve();
  }
  await connection.flush();
  expect(writes.filter((count) => count > 0)).toEqual([99]);
  connection.publish('gathered', '99');
  // The library itself hands over what was published in a microtask.
  await Promise.resolve();
  await connection.close();
  const texts: string[] = [];
  for await (const message of heard) texts.push(message.string());
  expect(texts).toEqual(Array.from({ length: 100 }, (_, index) => String(index)));
  proxy.close();
});
