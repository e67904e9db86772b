import { EndedCall, sessionService } from '@ambit/contracts';
import { z } from 'zod';
import type { StreamEvent } from './event-stream.js';

const Id = z.coerce.number().int().min(0);
/** Each event of a run has the payload of the event or signal of that name. */
const RunEventFrame = z.discriminatedUnion('type', [
  z.object({ type: z.literal('run.changed'), id: Id, data: sessionService.runChanged.payload }),
  z.object({ type: z.literal('tape.appended'), id: Id, data: sessionService.tapeAppended.payload }),
  z.object({ type: z.literal('interaction.requested'), id: Id, data: sessionService.interactionRequested.payload }),
  z.object({ type: z.literal('interaction.settled'), id: Id, data: sessionService.interactionSettled.payload }),
  // Calls that were told together share a place in the stream, which the last of them names.
  z.object({ type: z.literal('call.ended'), id: Id.optional(), data: EndedCall }),
  // Never stored, so it has no place in the stream to resume from.
  z.object({ type: z.literal('run.output'), id: Id.optional(), data: sessionService.runOutput.payload }),
]);

/** What a follower of a run is told. */
export type FollowedEvent = z.output<typeof RunEventFrame>;

const ENDED: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled', 'parked']);

/** Whether a run of this status goes on by itself no more. A suspended one does, in its resume run. */
export function hasEnded(status: string): boolean {
  return ENDED.has(status);
}

/** The event of a frame; undefined for a kind that this client does not know. */
export function runEventOf(frame: StreamEvent): FollowedEvent | undefined {
  const parsed = RunEventFrame.safeParse({
    type: frame.event,
    ...(frame.id === undefined ? {} : { id: frame.id }),
    data: readJson(frame.data),
  });
  return parsed.success ? parsed.data : undefined;
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
