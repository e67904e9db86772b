import { INLINE_RESULT_BYTES, type Claim, type Outcome } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import { ArtifactStore } from './artifact.store.js';
import { faultBody, stubText, textOf, type CallEnd, type DispatchEnd, type ToolResult } from './domain/call-end.js';
import { GatewayLease } from './gateway.lease.js';
import { Journal } from './journal.js';

type Known = Pick<Outcome, 'status' | 'content' | 'structuredContent' | 'artifact' | 'fault' | 'asks'>;

/** Writes how a claimed call ended: a large result as an artifact first, then the fact. */
@Injectable()
export class OutcomeWriter {
  constructor(
    @Inject(Journal) private readonly journal: Journal,
    @Inject(ArtifactStore) private readonly artifacts: ArtifactStore,
    @Inject(GatewayLease) private readonly lease: GatewayLease,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  /** Stores the outcome and gives the one that stands: a call that another gateway parked stays parked, whatever comes late. */
  async write(claim: Claim, end: DispatchEnd, durationMs: number): Promise<CallEnd> {
    const known = await this.#known(claim, end);
    const { operationId, originRunId } = claim;
    const outcome: Outcome = {
      schemaVersion: 1,
      operationId,
      originRunId,
      ...known,
      durationMs: Math.round(durationMs * 100) / 100,
      gatewayId: this.lease.id,
      at: new Date().toISOString(),
    };
    const standing = await this.journal.outcome(outcome);
    if (standing === outcome)
      return { kind: 'outcome', outcome, whole: end.kind === 'answered' && known.status !== 'indeterminate' ? end.result : undefined };
    this.log.warn(
      { operationId, standing: standing.status, late: outcome.status },
      'an outcome came after the call was settled; the first one stands',
    );
    return { kind: 'outcome', outcome: standing };
  }

  async #known(claim: Claim, end: DispatchEnd): Promise<Known> {
    switch (end.kind) {
      case 'answered':
        return this.#answered(claim, end.result);
      case 'asked':
        return {
          status: 'failed',
          fault: faultBody('TOOL_FAILED', { reason: `it asks first: ${end.reason}` }),
          asks: { reason: end.reason.slice(0, 500), ...(end.signIn === true ? { signIn: true } : {}) },
        };
      case 'stopped':
        return { status: end.status, fault: end.fault };
    }
  }

  async #answered({ sessionId, operationId }: Claim, result: ToolResult): Promise<Known> {
    const { content, structuredContent } = result;
    const status = result.isError ? 'failed' : 'completed';
    const text = textOf(result);
    const fault = result.isError ? { fault: faultBody('TOOL_FAILED', { reason: text.slice(0, 500) }) } : {};
    const whole = { content, ...(structuredContent === undefined ? {} : { structuredContent }) };
    const json = JSON.stringify(whole);
    // A UTF-16 unit is at most three bytes: only texts near the limit need counting.
    if (json.length * 3 <= INLINE_RESULT_BYTES || Buffer.byteLength(json) <= INLINE_RESULT_BYTES) return { status, ...whole, ...fault };
    const bytes = Buffer.from(json);
    try {
      const artifact = await this.artifacts.put(sessionId, bytes);
      return { status, content: [{ type: 'text', text: stubText(text, bytes.length, artifact.digest) }], artifact, ...fault };
    } catch (error) {
      this.log.error({ error, operationId }, 'a large result could not be stored; the call has happened and is not repeated');
      return {
        status: 'failed',
        fault: faultBody(
          'RESULT_TOO_LARGE',
          { limitBytes: INLINE_RESULT_BYTES, actualBytes: bytes.length },
          'The call has happened, but its large result could not be stored',
        ),
      };
    }
  }
}
