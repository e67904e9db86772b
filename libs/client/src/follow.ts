import { setTimeout as sleep } from 'node:timers/promises';
import { httpApi } from '@ambit/contracts';
import { AmbitError } from './ambit-error.js';
import type { AmbitClient } from './client.js';
import { readEvents } from './event-stream.js';
import { hasEnded, runEventOf, type FollowedEvent } from './run-event.js';

export interface FollowOptions {
  /** Only what came after this event. */
  readonly lastEventId?: number;
  readonly signal?: AbortSignal;
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;
/** In a row, without an event between them. */
const FAILURES = 20;

/**
 * What happens in a run and its resume runs, until the last of them has ended. A stream that breaks is opened again where it stopped;
 * what the server refuses is thrown, and so is the last of many failures in a row.
 */
export async function* follow(client: AmbitClient, runId: string, options: FollowOptions): AsyncGenerator<FollowedEvent> {
  const { signal } = options;
  let last = options.lastEventId;
  let failures = 0;
  for (;;) {
    try {
      const response = await client.open(httpApi.followRun, {
        params: { id: runId },
        headers: { accept: 'text/event-stream', ...(last === undefined ? {} : { 'last-event-id': String(last) }) },
        ...(signal === undefined ? {} : { signal }),
      });
      if (response.body === null) return;
      for await (const frame of readEvents(response.body)) {
        failures = 0;
        const event = runEventOf(frame);
        if (event === undefined) continue;
        last = event.id ?? last;
        yield event;
        if (event.type === 'run.changed' && hasEnded(event.data.status)) return;
      }
      if (last === undefined && hasEnded((await client.request(httpApi.getRun, { params: { id: runId } })).status)) return;
    } catch (error) {
      if (signal?.aborted === true) throw error;
      if ((error instanceof AmbitError && error.retry === 'never') || failures >= FAILURES) throw error;
    }
    failures += 1;
    await sleep(
      Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures, 10), LONGEST_PAUSE_MS),
      undefined,
      signal === undefined ? {} : { signal },
    );
  }
}
