import { operationId } from '@ambit/capability';
import { Claim, journalSubject, Outcome, streams } from '@ambit/contracts';
import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import type { Ref } from './by-hand.js';

/** The two facts that the journal holds of a call; undefined where it has none. */
export async function factsOf(
  connection: NatsConnection,
  run: Pick<Ref, 'originRunId'>,
  call: { readonly step: number; readonly callId: string },
): Promise<{ readonly claim: Claim | undefined; readonly outcome: Outcome | undefined }> {
  const id = operationId(run.originRunId, call.step, call.callId);
  const [claim, outcome] = await Promise.all([
    read(connection, journalSubject.claim(run.originRunId, id)),
    read(connection, journalSubject.outcome(run.originRunId, id)),
  ]);
  return { claim: Claim.optional().parse(claim), outcome: Outcome.optional().parse(outcome) };
}

async function read(connection: NatsConnection, subject: string): Promise<unknown> {
  const manager = await jetstreamManager(connection, { checkAPI: false });
  const message = await manager.streams.getMessage(streams.journal.name, { last_by_subj: subject });
  return message === null ? undefined : message.json();
}

/** How many claims the journal holds of a run. */
export async function claimsOf(connection: NatsConnection, run: Pick<Ref, 'originRunId'>): Promise<number> {
  const manager = await jetstreamManager(connection, { checkAPI: false });
  const info = await manager.streams.info(streams.journal.name, { subjects_filter: journalSubject.operationsOf(run.originRunId) });
  return Object.keys(info.state.subjects ?? {}).filter((subject) => subject.endsWith('.claim')).length;
}
