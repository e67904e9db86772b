import { argumentsHash, BadArguments, parseArguments, sha256Hex } from '@ambit/capability';
import { Bus } from '@ambit/bus';
import { sessionService, type Authority, type CallResult, type RunStatus } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import { ArgumentsPolicy } from './arguments.policy.js';
import { CallRepository, type RefusedCall } from './call.repository.js';
import type { CallEnd } from './domain/call-end.js';
import type { Operation } from './domain/operation.js';
import { GatewayLease } from './gateway.lease.js';
import { SnapshotCache } from './snapshot.cache.js';

/** Of a run in another state nothing more may happen. */
const GOES_ON: ReadonlySet<RunStatus> = new Set(['queued', 'running', 'suspended']);

export type Refused = Extract<CallEnd, { kind: 'refused' }>;

/** Records what the gates refused: on the tape before the answer, and for people with its reason. The journal holds only what was claimed. */
@Injectable()
export class Refusals {
  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(CallRepository) private readonly repository: CallRepository,
    @Inject(GatewayLease) private readonly lease: GatewayLease,
    @Inject(SnapshotCache) private readonly snapshots: SnapshotCache,
    @Inject(ArgumentsPolicy) private readonly policy: ArgumentsPolicy,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  /** The result of a refused call: the code and its message, never the detail. */
  static result({ call }: Operation, { fault }: Refused): CallResult {
    return { callId: call.callId, status: fault.code === 'CANCELLED' ? 'cancelled' : 'refused', fault };
  }

  async record(authority: Authority, refused: readonly { readonly operation: Operation; readonly end: Refused }[]): Promise<void> {
    const first = refused[0];
    if (first === undefined) return;
    const { runId, originRunId, sessionId, step } = first.operation;
    const results = refused.map(({ operation, end }) => Refusals.result(operation, end));
    // A result that does not reach the tape leaves its call open there: the worker sends the batch again, and this is tried again.
    const onTape = this.bus.call(sessionService.recordResults, { runId, originRunId, sessionId, step, results });
    for (const settled of await Promise.allSettled([onTape, this.forPeople(authority, refused)]))
      if (settled.status === 'rejected') this.log.warn({ error: settled.reason, runId }, 'a refusal was not recorded');
  }

  /** Writes the record, the audit and the event of refused calls. */
  async forPeople(authority: Authority, refused: readonly { readonly operation: Operation; readonly end: Refused }[]): Promise<void> {
    await this.repository.refuse(await Promise.all(refused.map(({ operation, end }) => this.#row(authority, operation, end))));
  }

  async #row(authority: Authority, operation: Operation, { fault, gate, detail, rule }: Refused): Promise<RefusedCall> {
    const { operationId, originRunId, runId, sessionId, agentId, fingerprint, step, call } = operation;
    const target = this.snapshots.held(fingerprint)?.tools.get(call.name)?.target ?? null;
    const { hash, input } = seen(call.arguments);
    const preview = typeof input === 'string' ? input : await this.policy.textOf(target, input);
    return {
      operationId,
      originRunId,
      runId,
      sessionId,
      agentId,
      projectId: authority.projectId,
      step,
      callId: call.callId,
      tool: call.name,
      target,
      argumentsHash: hash,
      preview,
      fingerprint,
      principal: authority.principal,
      isOfEndedRun: !GOES_ON.has(authority.status),
      rule,
      gatewayId: this.lease.id,
      fault,
      gate,
      detail: detail ?? null,
      traceparent: operation.traceparent,
      at: new Date(),
    };
  }
}

/** Arguments that cannot be read have the digest of their text, and the reason stands where they would be shown. */
function seen(text: string): { readonly hash: string; readonly input: Readonly<Record<string, unknown>> | string } {
  try {
    const input = parseArguments(text);
    return { hash: argumentsHash(input), input };
  } catch (error) {
    if (error instanceof BadArguments) return { hash: sha256Hex(text), input: JSON.stringify({ unreadable: error.reason }) };
    throw error;
  }
}
