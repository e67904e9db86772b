import { Bus } from '@ambit/bus';
import { journalSubject, pattern, streams, toolGateway, worker, type Output, type Parsed, type Principal } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';
import { jetstreamManager, type JetStreamManager } from '@nats-io/jetstream';
import { ArtifactStore } from './artifact.store.js';
import { AuthorityCache } from './authority.cache.js';
import { OpenCalls } from './open-calls.js';
import { PlanRepository } from './plan.repository.js';
import { Reconciliation } from './reconciliation.js';
import { SessionRepository } from './session.repository.js';
import { Toolsets } from './toolsets.js';

type Clear = Parsed<typeof toolGateway.clearSession>;

const SYSTEM: Principal = { id: 'system:tool-gateway', kind: 'system', issuer: 'local', display: 'tool-gateway' };

/** Drops what this service keeps for a session that was moved, cleared or deleted. Each part may be done again. */
@Injectable()
export class SessionRemains {
  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(OpenCalls) private readonly calls: OpenCalls,
    @Inject(AuthorityCache) private readonly authorities: AuthorityCache,
    @Inject(PlanRepository) private readonly plans: PlanRepository,
    @Inject(ArtifactStore) private readonly artifacts: ArtifactStore,
    @Inject(Reconciliation) private readonly reconciliation: Reconciliation,
    @Inject(SessionRepository) private readonly repository: SessionRepository,
    @Inject(Toolsets) private readonly toolsets: Toolsets,
  ) {}

  /** Nothing of a whole session goes while a call of it has no end: who executes it has still to say which. */
  async clear({ sessionId, whole, look, before, by, runs }: Clear): Promise<Output<typeof toolGateway.clearSession>> {
    for (const { runId } of runs) {
      this.authorities.drop(runId);
      for (const call of this.calls.ofRun(runId)) call.stop('the session ended');
    }
    await this.plans.drop(sessionId, new Date(before));
    if (!whole) return { open: 0 };
    const manager = await jetstreamManager(this.bus.connection, { checkAPI: false });
    await this.#dropDeferred(manager, sessionId);
    await this.#endLeft(sessionId);
    const origins = [...new Set(runs.map(({ originRunId }) => originRunId))];
    let open = await this.repository.unended(sessionId);
    for (const originRunId of origins) open += await this.#open(manager, originRunId);
    if (open > 0 || look) return { open };
    await this.repository.close(sessionId, by ?? SYSTEM, new Date());
    for (const operationId of await this.repository.indeterminate(sessionId))
      await manager.streams.purge(streams.events.name, { filter: pattern(toolGateway.callParked, { operationId }) });
    await this.artifacts.forget(sessionId);
    for (const originRunId of origins)
      await manager.streams.purge(streams.journal.name, { filter: journalSubject.operationsOf(originRunId) });
    await this.repository.purged(origins, new Date());
    return { open: 0 };
  }

  /** Tells every worker that could have been given a call of the session to end what such a call left running. */
  async #endLeft(sessionId: string): Promise<void> {
    for (const agentId of await this.repository.agentsOf(sessionId))
      for (const workerId of this.toolsets.workersOf(agentId))
        this.bus.signal(worker.endSession, { sessionId }, { keys: { agentId, workerId } });
  }

  /** Claims of an origin run without an outcome, or whose outcome has not reached Postgres yet. */
  async #open(manager: JetStreamManager, originRunId: string): Promise<number> {
    const filter = journalSubject.operationsOf(originRunId);
    const info = await manager.streams.info(streams.journal.name, { subjects_filter: filter });
    const subjects = new Set(Object.keys(info.state.subjects ?? {}));
    if (subjects.size === 0) return 0;
    const open = [...subjects].filter(
      (subject) => subject.endsWith('.claim') && !subjects.has(subject.replace(/claim$/, 'outcome')),
    ).length;
    if (open > 0) return open;
    return this.reconciliation.bring(filter);
  }

  /** Approved calls that no gateway has taken yet. */
  async #dropDeferred(manager: JetStreamManager, sessionId: string): Promise<void> {
    const subject = pattern(toolGateway.executeDeferred, { sessionId });
    for (;;) {
      const message = await manager.direct.getMessage(streams.deferred.name, { last_by_subj: subject });
      if (message === null) return;
      await manager.streams.deleteMessage(streams.deferred.name, message.seq, false);
    }
  }
}
