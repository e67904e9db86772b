import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { readEvents, type StreamEvent } from './event-stream.js';

async function read(...chunks: readonly Uint8Array[]): Promise<StreamEvent[]> {
  const events: StreamEvent[] = [];
  for await (const event of readEvents(from(chunks))) events.push(event);
  return events;
}
async function* from<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}
const bytes = (text: string) => new TextEncoder().encode(text);

it('reads fields, comments, several lines of data and every kind of line break', async () => {
  expect(
    await read(bytes(': hi\r\nid: 1\r\nevent: a\r\ndata: one\r\ndata:  two\r\n\r\ndata\rretry: 5\r\rid: 9\n\ndata: cut off\n')),
  ).toEqual([
    { id: '1', event: 'a', data: 'one\n two' },
    { id: undefined, event: 'message', data: '' },
  ]);
});

it('gives the same events however the bytes are cut', async () => {
  const text = bytes('id: 1\r\nevent: grüß\r\ndata: {"a":"€"}\r\n\r\nid: 2\ndata: 😀\n\n');
  const whole = await read(text);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(text.byteLength), { maxLength: 8 }), async (cuts) => {
      const places = [0, ...cuts.sort((left, right) => left - right), text.byteLength];
      const chunks = places.slice(1).map((place, index) => text.slice(places[index] ?? 0, place));
      expect(await read(...chunks)).toEqual(whole);
    }),
  );
});

it('refuses an event without end', async () => {
  await expect(read(...Array.from({ length: 33 }, () => new Uint8Array(64 * 1024).fill(97)))).rejects.toThrow('longer than 2 MiB');
});
