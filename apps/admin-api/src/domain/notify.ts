import type { CallRecord, Interaction, NotifiedEvent, Notify } from '@ambit/contracts';

/** Something that happened, as a webhook is to be told of it. */
export interface Happening {
  readonly event: NotifiedEvent;
  /** The interaction or operation that it is about. */
  readonly about: string;
  readonly projectId: string;
  readonly at: string;
}

/** One event has one id, however often it is heard or found: receivers tell repeated ones by it. */
export function eventIdOf({ event, about }: Pick<Happening, 'event' | 'about'>): string {
  return `${about}.${event === 'interaction.requested' ? 'requested' : 'parked'}`;
}

/** What happened, as its owner tells of it. */
export const happeningOf = {
  interaction: ({ id, projectId, createdAt }: Pick<Interaction, 'id' | 'projectId' | 'createdAt'>): Happening => ({
    event: 'interaction.requested',
    about: id,
    projectId,
    at: createdAt,
  }),
  parkedCall: ({
    operationId,
    projectId,
    endedAt,
    claimedAt,
  }: Pick<CallRecord, 'operationId' | 'projectId' | 'endedAt' | 'claimedAt'>): Happening => ({
    event: 'call.parked',
    about: operationId,
    projectId,
    at: endedAt ?? claimedAt,
  }),
};

/** What of an entry is compared when it is planned; its URL is its name. */
export function notifyState({ events, webhook }: Pick<Notify, 'events' | 'webhook'>): {
  readonly events: string[];
  readonly secret: string;
} {
  return { events: [...new Set(events)].sort(), secret: webhook.sign.secret };
}
