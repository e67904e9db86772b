import type { ServerResponse } from 'node:http';
import { Bus } from '@ambit/bus';
import { resumeRunId } from '@ambit/capability';
import { eventsAbout, pattern, sessionService, streams, toolGateway, type Run } from '@ambit/contracts';
import { DeliverPolicy, jetstream, type ConsumerMessages } from '@nats-io/jetstream';
import { Injectable } from '@nestjs/common';
import { z } from 'zod';

/** A resume run's id follows from its predecessor's, so a follower hears the whole chain from the start. */
const CHAIN = 16;
const HEARTBEAT_MS = 15_000;
const ENDED = new Set(['completed', 'failed', 'cancelled', 'parked']);
const Changed = z.looseObject({ runId: z.string(), status: z.string() });

interface Following {
  readonly lastEventId: number | undefined;
  readonly signal: AbortSignal;
}

/** Server-sent events of a run and the runs that resume it: from the stream's beginning, or after Last-Event-ID. */
@Injectable()
export class RunEvents {
  constructor(private readonly bus: Bus) {}

  /** Ends when the chain has ended, or with the caller. Every event's id is its sequence in the stream; text deltas have none. */
  async stream(run: Run, following: Following, response: ServerResponse): Promise<void> {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store', 'x-accel-buffering': 'no' });
    response.write('retry: 1000\n\n');
    const runs = chainOf(run.id);
    const consumer = await jetstream(this.bus.connection).consumers.get(streams.events.name, {
      filter_subjects: runs.map(eventsAbout),
      ...(following.lastEventId === undefined
        ? { deliver_policy: DeliverPolicy.All }
        : { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: following.lastEventId + 1 }),
    });
    const messages = await consumer.consume();
    const deltas = runs.map((runId) =>
      this.bus.connection.subscribe(pattern(sessionService.runOutput, { runId }), {
        callback: (error, message) => void (error === null && response.write(frame('run.output', message.string()))),
      }),
    );
    const heartbeat = setInterval(() => response.write(': still here\n\n'), HEARTBEAT_MS);
    const stop = () => messages.stop();
    following.signal.addEventListener('abort', stop, { once: true });
    try {
      await this.relay(run, messages, response);
    } finally {
      clearInterval(heartbeat);
      following.signal.removeEventListener('abort', stop);
      for (const delta of deltas) delta.unsubscribe();
      messages.stop();
      response.end();
    }
  }

  private async relay(run: Run, messages: ConsumerMessages, response: ServerResponse): Promise<void> {
    if (ENDED.has(run.status) && messages.getProcessed() === 0) setTimeout(() => messages.stop(), HEARTBEAT_MS).unref(); // its events may be swept already
    for await (const message of messages) {
      const [, , , , noun, verb] = message.subject.split('.');
      const text = message.string();
      if (
        !response.write(`${noun}.${verb}` === 'call.ended' ? endedFrames(text, message.seq) : frame(`${noun}.${verb}`, text, message.seq))
      )
        await new Promise((resolve) => response.once('drain', resolve).once('close', resolve));
      if (`${noun}.${verb}` !== 'run.changed') continue;
      const changed = Changed.safeParse(JSON.parse(text));
      if (changed.success && ENDED.has(changed.data.status)) return;
    }
  }
}

function frame(type: string, data: string, id?: number): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${type}\ndata: ${data.replaceAll('\n', ' ')}\n\n`;
}

/** A frame for each call. Only the last has the id: whoever comes back after it missed none. */
function endedFrames(text: string, id: number): string {
  const { calls, ...names } = toolGateway.callEnded.payload.parse(JSON.parse(text));
  return calls
    .map((call, index) => frame('call.ended', JSON.stringify({ ...names, ...call }), index === calls.length - 1 ? id : undefined))
    .join('');
}

function chainOf(runId: string): string[] {
  const chain = [runId];
  while (chain.length < CHAIN) chain.push(resumeRunId(chain.at(-1) ?? runId));
  return chain;
}
