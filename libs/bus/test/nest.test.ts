import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { toToken, type Parsed } from '@ambit/contracts';
import { startNats, type TestNats } from '@ambit/testing';
import { Controller, Injectable, Module, UseGuards, type INestMicroservice, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Answers, BusServer, Hears, silentLog, type Call, type Delivery, type HandledUse } from '../src/index.js';
import { notes } from './fixture.js';

let nats: TestNats;
beforeAll(async () => {
  nats = await startNats();
});
afterAll(() => nats.stop());

const told: string[] = [];
let onTold: () => void = () => undefined;

@Injectable()
class NoteService {
  get(id: string): { id: string; text: string } {
    return { id, text: 'from a service' };
  }
}

@Controller()
class NoteHandlers {
  constructor(private readonly notes: NoteService) {}

  @Answers(notes.getNote)
  get(input: Parsed<typeof notes.getNote>, _call: Call<typeof notes.getNote>) {
    return this.notes.get(input.id);
  }

  @Hears(notes.noteRead)
  @Hears(notes.otherRead)
  heard(payload: { id: string }, delivery: Delivery) {
    told.push(`${payload.id}@${delivery.deliveries}`);
    if (told.length === 2) onTold();
  }
}

@Module({ controllers: [NoteHandlers], providers: [NoteService] })
class NoteModule {}

const use: HandledUse = {
  answers: [notes.getNote],
  answersDynamically: [],
  hears: [notes.noteRead, notes.otherRead],
  works: [],
  listens: [],
};

async function start(module: Type, handled: HandledUse): Promise<INestMicroservice> {
  const strategy = new BusServer({ connection: nats.connection, name: 'notes', version: '1.2.3', use: handled, log: silentLog });
  const app = await NestFactory.createMicroservice(module, { strategy, logger: false, abortOnError: false });
  strategy.bindTo(app);
  await app.listen();
  return app;
}

it('injects into handlers, hears with several decorators, and tells tools what it answers', async () => {
  const both = new Promise<void>((resolve) => (onTold = resolve));
  await nats.bus.emit(notes.noteRead, { id: 'a', text: '' });
  await nats.bus.emit(notes.otherRead, { id: 'b', text: '' });
  const app = await start(NoteModule, use);
  expect(await nats.bus.call(notes.getNote, { id: 'n' })).toEqual({ id: 'n', text: 'from a service' });
  await both;
  expect(told.sort()).toEqual(['a@1', 'b@1']);

  const info = (await nats.connection.request('$SRV.INFO.notes', '')).json();
  expect(info).toMatchObject({
    type: 'io.nats.micro.v1.info_response',
    name: 'notes',
    version: '1.2.3',
    endpoints: [
      {
        subject: notes.getNote.subject,
        queue_group: 'notes',
        metadata: { contract: notes.getNote.subject, schema: expect.stringMatching(/^[0-9a-f]{16}$/) },
      },
    ],
  });
  const stats = (await nats.connection.request('$SRV.STATS', '')).json();
  expect(stats).toMatchObject({ type: 'io.nats.micro.v1.stats_response', endpoints: [{ num_requests: 1, num_errors: 0 }] });
  const { id } = (await nats.connection.request('$SRV.PING', '')).json<{ id: string }>();
  expect((await nats.connection.request(`$SRV.PING.notes.${toToken(id)}`, '')).json()).toMatchObject({ id });
  await app.close();
  await expect(nats.bus.call(notes.getNote, { id: 'n' })).rejects.toMatchObject({ code: 'UNAVAILABLE' });
});

it('does not start when a declared handler is missing, or one is not declared', async () => {
  await expect(start(NoteModule, { ...use, answers: [notes.getNote, notes.writeNote] })).rejects.toThrow(
    /answers ambit\.rpc\.notes\.v1\.note\.write\.\{folder\}: no method is decorated/,
  );
  await expect(start(NoteModule, { ...use, answers: [] })).rejects.toThrow(/handled, but not declared/);
  const dynamically = await start(NoteModule, { ...use, answersDynamically: [notes.writeNote] });
  await dynamically.close();
});

it('does not start with a guard that would not run', async () => {
  @Controller()
  class Guarded {
    @UseGuards({ canActivate: () => false })
    @Answers(notes.getNote)
    get(input: Parsed<typeof notes.getNote>) {
      return { id: input.id, text: '' };
    }
  }
  @Module({ controllers: [Guarded] })
  class GuardedModule {}
  await expect(start(GuardedModule, { ...use, hears: [] })).rejects.toThrow(/Guarded.get: guards, interceptors/);
});
