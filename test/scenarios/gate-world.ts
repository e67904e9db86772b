import { canonicalRecord, fingerprint, sha256Hex, type SnapshotRecord } from '@ambit/capability';
import {
  type AuditRecord,
  buckets,
  Fault,
  journalSubject,
  leaseKey,
  mcpBroker,
  sessionService,
  streams,
  toolGateway,
  type CallResult,
  type Input,
  type IntendedCall,
  type Principal,
  type RunJob,
  type Server,
  type ServiceName,
} from '@ambit/contracts';
import { collect, withClient, type Collector } from '@ambit/testing';
import { expect } from '@jest/globals';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { headers } from '@nats-io/nats-core';
import { randomUUID } from 'node:crypto';
import { operationOf, PlainWorker, type Attempt } from '../system/plain-worker.js';
import { startSystem, type System } from '../system/system.js';

type AgentInput = Input<typeof sessionService.putAgent>;

export const alice: Principal = { id: 'user:alice', kind: 'person', issuer: 'local', display: 'Alice' };

/** The fault's whole body, as its receiver sees it. */
export async function faultOf(request: Promise<unknown>): Promise<unknown> {
  const error: unknown = await request.then(
    (answer) => ({ answered: answer }),
    (reason: unknown) => reason,
  );
  return error instanceof Fault ? error.toBody() : error;
}

/** Fault codes of refused and failed calls, statuses of the others. */
export const codes = (results: readonly CallResult[]): string[] => results.map(({ fault, status }) => fault?.code ?? status);

/** Built services, their agents, and workers that say what they like; with what was recorded of it. */
export class GateWorld {
  private constructor(
    readonly system: System,
    readonly audit: Collector<typeof toolGateway.auditAppended>,
  ) {}

  static async start(services: readonly ServiceName[], environment: Readonly<Record<string, string>> = {}): Promise<GateWorld> {
    const system = await startSystem({ services, environment });
    return new GateWorld(system, await collect(system.connection, toolGateway.auditAppended));
  }

  async stop(): Promise<void> {
    this.audit.stop();
    await this.system.stop();
  }

  /** A server whose tools are known before any run begins. */
  async server(spec: Input<typeof mcpBroker.putServer>): Promise<Server> {
    const { id } = await this.system.bus.call(mcpBroker.putServer, spec);
    return this.system.bus.call(mcpBroker.testServer, { id }, { timeoutMs: 60_000 });
  }

  /** Waits by asking the server of this name to connect: a plugin's server is known with its first start. */
  async serverKnown(slug: string): Promise<void> {
    const { id } = await this.system.bus.call(mcpBroker.getServer, { projectId: 'default', slug });
    const server = await this.system.bus.call(mcpBroker.testServer, { id }, { timeoutMs: 60_000 });
    expect(server).toMatchObject({ state: 'connected', tools: 1 });
  }

  /** An agent of its own in full access to every server, where the policy says nothing else; and its worker. */
  async agent(policy: AgentInput['policy'] = {}): Promise<PlainWorker> {
    const id = `agent-${randomUUID().slice(0, 8)}`;
    await this.put(id, policy);
    await this.system.bus.call(sessionService.ensurePool, { agentId: id, pool: 'shared' });
    return new PlainWorker(id, await this.system.connectWorker({ agentId: id }));
  }

  /** Gives the agent another policy, or switches it off. */
  async put(id: string, policy: AgentInput['policy'], more: Partial<AgentInput> = {}): Promise<void> {
    await this.system.bus.call(sessionService.putAgent, { id, policy: { mode: 'full_access', servers: null, ...policy }, ...more });
  }

  /** Sends the agent a message; its worker takes the job. */
  async job(worker: PlainWorker, more: Partial<Input<typeof sessionService.receiveMessage>> = {}): Promise<RunJob> {
    await this.system.bus.call(sessionService.receiveMessage, {
      principal: alice,
      agentId: worker.agentId,
      content: 'Hello',
      idempotencyKey: randomUUID(),
      ...more,
    });
    return worker.take();
  }

  /** A run of an agent of its own, begun. */
  async run(policy: AgentInput['policy'] = {}): Promise<{ worker: PlainWorker; attempt: Attempt }> {
    const worker = await this.agent(policy);
    return { worker, attempt: await worker.start(await this.job(worker)) };
  }

  /** Whether the call was claimed: only then anything was dispatched. */
  async isClaimed(attempt: Attempt, step: number, call: IntendedCall): Promise<boolean> {
    const manager = await jetstreamManager(this.system.connection);
    const subject = journalSubject.claim(attempt.ref.originRunId, operationOf(attempt, step, call));
    return (await manager.direct.getMessage(streams.journal.name, { last_by_subj: subject })) !== null;
  }

  /** Waits for the audit record of a refused call; answers with the gate that it names. */
  async gateOf(attempt: Attempt, step: number, call: IntendedCall): Promise<string | undefined> {
    const operationId = operationOf(attempt, step, call);
    const isOfCall = ({ action, target }: AuditRecord): boolean => action === 'call.refused' && target.includes(operationId);
    const { payload } = await this.audit.next((one) => one.payload.records.some(isOfCall));
    return /at gate ([a-z-]+)/.exec(payload.records.find(isOfCall)?.reason ?? '')?.[1];
  }

  /** Holds a result against one refusal: its code, the gate in its audit record, and that nothing was claimed. */
  async expectRefusal(
    { attempt, step, call, result }: { attempt: Attempt; step: number; call: IntendedCall; result: CallResult | undefined },
    { code, gate, status = 'refused' }: { readonly code: string; readonly gate: string; readonly status?: CallResult['status'] },
  ): Promise<void> {
    expect(result).toMatchObject({ callId: call.callId, status, fault: { code } });
    expect(await this.isClaimed(attempt, step, call)).toBe(false);
    expect(await this.gateOf(attempt, step, call)).toBe(gate);
  }

  /** What the end of an owner's lease does to its bucket, without waiting the minute that it lives. */
  async endLease(owner: string): Promise<void> {
    const header = headers();
    header.set('KV-Operation', 'PURGE');
    header.set('Nats-Rollup', 'sub');
    const subject = `$KV.${buckets.leases60s.name}.${leaseKey.owner(owner)}`;
    await jetstream(this.system.connection).publish(subject, '', { headers: header });
  }

  /** Runs statements on the system's database, as somebody would who got at what is stored. */
  async sql(text: string, values: readonly unknown[]): Promise<unknown[]> {
    let rows: unknown[] = [];
    await withClient(this.system.databaseUrl, async (client) => {
      ({ rows } = await client.query(text, [...values]));
    });
    return rows;
  }

  /**
   * Gives a run another record than ingress composed, stored and mapped in every respect as one of an older release would be: what such a record
   * lists is not thereby allowed. `owners` are fences that its mapping names beside those it had.
   */
  async withSnapshot(
    job: RunJob,
    change: (record: SnapshotRecord) => SnapshotRecord,
    owners: Readonly<Record<string, number>> = {},
  ): Promise<RunJob> {
    const [row] = (await this.sql('SELECT "text" FROM "session_service"."snapshot" WHERE "fingerprint" = $1', [job.fingerprint])) as {
      text: string;
    }[];
    const record = change(JSON.parse(row?.text ?? '') as SnapshotRecord);
    const [text, print] = [canonicalRecord(record), fingerprint(record)];
    expect(sha256Hex(text)).toBe(print);
    await this.sql(
      `INSERT INTO "session_service"."snapshot" ("fingerprint", "agent_id", "format", "text", "bytes", "tools", "skills", "created_at")
       SELECT $2, "agent_id", "format", $3, $4, "tools", "skills", "created_at" FROM "session_service"."snapshot" WHERE "fingerprint" = $1`,
      [job.fingerprint, print, text, Buffer.byteLength(text)],
    );
    await this.sql(
      `INSERT INTO "session_service"."mapping" ("session_id", "fingerprint", "agent_id", "owners", "at")
       SELECT "session_id", $3, "agent_id", "owners" || $4::jsonb, "at" FROM "session_service"."mapping"
       WHERE "session_id" = $1 AND "fingerprint" = $2`,
      [job.sessionId, job.fingerprint, print, JSON.stringify(owners)],
    );
    await this.sql('UPDATE "session_service"."run" SET "fingerprints" = array_append("fingerprints", $2) WHERE "id" = $1', [
      job.runId,
      print,
    ]);
    return { ...job, fingerprint: print };
  }
}
