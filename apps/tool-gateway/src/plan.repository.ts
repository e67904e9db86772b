import { DB, type GatewayDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';

export interface PlanStep {
  readonly step: string;
  readonly status: 'pending' | 'in_progress' | 'completed';
}

/** The newest plan of each session. */
@Injectable()
export class PlanRepository {
  constructor(@Inject(DB) private readonly db: GatewayDb) {}

  /** Forgets the plan of a session, unless it was made after a moment. */
  async drop(sessionId: string, before: Date): Promise<void> {
    await this.db.gatewayPlan.deleteMany({ where: { sessionId, updatedAt: { lte: before } } });
  }

  async put(sessionId: string, plan: readonly PlanStep[], updatedAt: Date): Promise<void> {
    const kept = plan.map((step) => ({ ...step }));
    await this.db.gatewayPlan.upsert({
      where: { sessionId },
      create: { sessionId, plan: kept, updatedAt },
      update: { plan: kept, updatedAt },
    });
  }
}
