import { AuditAppended, auditEvent, buckets, pattern, services, streams, type AuditRecord } from '@ambit/contracts';
import { chainEnds, keepLostRecords, type ChainEnd } from '@ambit/db';
import { DeliverPolicy, jetstream, jetstreamManager, JetStreamApiError, type JetStreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';

const STREAM_NOT_FOUND = 10_059;
const EVENTS = streams.events.name;
/** Clocks of two machines may be so far apart. */
const CLOCKS_MS = 10 * 60_000;
const AT_ONCE = 500;
const QUIET_MS = 5_000;

/** What tells of runs, and what is a copy of rows that are others now. Epochs and artifacts stay: the one never goes back, the other is named by rows. */
const MADE_ANEW: readonly string[] = [
  streams.journal.name,
  streams.runs.name,
  streams.deferred.name,
  ...[buckets.snapshots, buckets.mappings, buckets.leases5s, buckets.leases15s, buckets.leases60s].map(({ name }) => `KV_${name}`),
];

/**
 * Brings JetStream to a database that was restored: keeps for admin-api what was done after the backup, as far as the stream of events
 * still tells it, and removes what belongs to rows that are gone. Gives what it did, in words. No service may run meanwhile.
 */
export async function afterRestore(connection: NatsConnection, databaseUrl: string): Promise<string[]> {
  const manager = await jetstreamManager(connection);
  const lost = await lostRecords(connection, manager, databaseUrl);
  const { acts, calls } = lost;
  for (let start = 0; start < acts.length; start += AT_ONCE) await keepLostRecords(databaseUrl, acts.slice(start, start + AT_ONCE));
  for (const name of MADE_ANEW) await existing(() => manager.streams.delete(name));
  // What is told there is of rows that are gone; whoever listens reads again.
  await existing(() => manager.streams.purge(EVENTS));
  return [
    `restored: ${acts.length} acts and ${calls} ends of calls are younger than the backup; what those acts took away is taken away again`,
    'restored: journal, jobs, leases, snapshots and mappings are made anew; runs that were going are parked when session-service starts',
  ];
}

interface Lost {
  readonly acts: readonly AuditRecord[];
  /** How many calls ended, or were refused. */
  readonly calls: number;
}

/** Audit records that were told and that no owner's chain has. */
async function lostRecords(connection: NatsConnection, manager: JetStreamManager, databaseUrl: string): Promise<Lost> {
  const owners = Object.entries(services).flatMap(([name, { emits }]) =>
    emits.some(({ subject }) => subject === auditEvent(name).subject) ? [name] : [],
  );
  const ends = await chainEnds(databaseUrl, owners);
  const info = await existing(() => manager.streams.info(EVENTS));
  if (info === undefined || info.state.messages === 0) return { acts: [], calls: 0 };
  const newest = Math.max(...[...ends.values()].map(({ atMs }) => atMs));
  const consumer = await jetstream(connection).consumers.get(EVENTS, {
    filter_subjects: owners.map((owner) => pattern(auditEvent(owner))),
    deliver_policy: DeliverPolicy.StartTime,
    opt_start_time: new Date(newest - CLOCKS_MS).toISOString(),
  });
  const acts: AuditRecord[] = [];
  let calls = 0;
  for (let left = (await consumer.info()).num_pending; left > 0;) {
    const some = await consumer.fetch({ max_messages: Math.min(left, AT_ONCE), expires: QUIET_MS });
    let taken = 0;
    for await (const message of some) {
      taken++;
      for (const record of AuditAppended.safeParse(message.json()).data?.records ?? []) {
        if (!isLost(record, ends.get(record.owner))) continue;
        if (record.action.startsWith('call.')) calls++;
        else acts.push(record);
      }
    }
    if (taken === 0) break;
    left -= taken;
  }
  return { acts, calls };
}

function isLost({ sequence }: AuditRecord, end: ChainEnd | undefined): boolean {
  return end !== undefined && sequence > end.sequence;
}

async function existing<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === STREAM_NOT_FOUND) return undefined;
    throw error;
  }
}
