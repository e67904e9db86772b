import { type Claim, type Outcome } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import { faultBody, type CallEnd } from './domain/call-end.js';
import { GatewayLease } from './gateway.lease.js';
import { Journal } from './journal.js';

const FIRST_LOOK_MS = 50;
const LONGEST_LOOK_MS = 1_000;

/** Follows calls that another process claimed, until their outcome stands. */
@Injectable()
export class ForeignClaims {
  constructor(
    @Inject(Journal) private readonly journal: Journal,
    @Inject(GatewayLease) private readonly lease: GatewayLease,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  /** For whoever joined the operation, so that no attempt of ours is under way. Waits for the outcome as long as its gateway lives, which ends every call with its run's time; parks the call when it does not live. */
  async follow(claim: Claim): Promise<CallEnd> {
    for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(LONGEST_LOOK_MS, pauseMs * 2)) {
      const outcome = await this.journal.readOutcome(claim.originRunId, claim.operationId);
      if (outcome !== undefined) return { kind: 'outcome', outcome };
      // Asked after the outcome: a gateway that wrote it and left is not one that died with the call.
      const isOurs = claim.gatewayId === this.lease.id;
      if (isOurs || !(await this.lease.isAlive(claim.gatewayId))) return { kind: 'outcome', outcome: await this.park(claim) };
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  /** Records that nobody knows how a call ended; gives the outcome that stands, where one was written after all. */
  async park(claim: Pick<Claim, 'originRunId' | 'operationId' | 'at'>): Promise<Outcome> {
    const { originRunId, operationId } = claim;
    this.log.warn({ operationId }, 'the gateway that claimed this call is gone without its outcome; the call is parked');
    return this.journal.outcome({
      schemaVersion: 1,
      operationId,
      originRunId,
      status: 'indeterminate',
      fault: faultBody('INDETERMINATE'),
      durationMs: Math.max(0, Date.now() - Date.parse(claim.at)),
      gatewayId: this.lease.id,
      at: new Date().toISOString(),
    });
  }
}
