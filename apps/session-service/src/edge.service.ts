import { Bus, type Call } from '@ambit/bus';
import { adminApi, fault, sessionService, type Agent, type Output, type Parsed } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { agents, withFresh } from './agent.repository.js';
import { placeKey } from './domain/session-key.js';
import { withFingerprint } from './domain/fingerprints.js';
import { hasEnded, type RunRecord } from './domain/run-state.js';
import { uuidV7 } from './ids.js';
import type { Prepared } from './ingress.service.js';
import { newRun, type Beginning } from './new-run.js';
import { newSession } from './new-session.js';
import { runs } from './run.repository.js';
import { sessions, type SessionRecord } from './session.repository.js';
import { Snapshots } from './snapshot.service.js';
import { Transactions, type Unit } from './transactions.repository.js';
import { WhoseReader } from './whose.service.js';
import { guarded } from './worker-guard.js';

type Open = Parsed<typeof sessionService.openEdge>;
type Opened = Output<typeof sessionService.openEdge>;

/** After that another run is begun, so that the journal is emptied of the calls of the one before; calls that are under way in it go on. */
const RUN_AGE_MS = 60 * 60_000;
/** Use is noted once in that time. */
const NOTED_MS = 60_000;

/** The runs in which MCP clients make their calls: no worker, no job, no steps. */
@Injectable()
export class EdgeService {
  constructor(
    private readonly bus: Bus,
    private readonly transactions: Transactions,
    private readonly snapshots: Snapshots,
    private readonly whose: WhoseReader,
  ) {}

  /** The run that a token opens, with the snapshot of the world as it is now. An unchanged world costs no write. */
  async open(input: Open, call: Call): Promise<Opened> {
    return input.runId === null ? withFresh(() => this.#open(input, call)) : this.#ofWorker(input, input.runId);
  }

  /** What the program behind a worker's run comes to the edge with. */
  async issue(
    ref: Parsed<typeof sessionService.openRunEdge>,
    call: Call<typeof sessionService.openRunEdge>,
  ): Promise<Output<typeof sessionService.openRunEdge>> {
    const from = { contract: sessionService.openRunEdge, agentId: call.keys.agentId, ref };
    const { run } = await guarded(this.transactions.read, from);
    const agent = await agents.find(this.transactions.read, run.agentId);
    if (agent?.kind !== 'acp') throw fault(sessionService.openRunEdge, 'AGENT_KIND');
    const { id: runId, agentId, projectId, principal } = run;
    return this.bus.call(adminApi.issueRunToken, { agentId, projectId, principal: principal.id, runId });
  }

  /** A worker's run is its worker's: it is neither made nor composed anew here. */
  async #ofWorker({ agentId, principal }: Open, runId: string): Promise<Opened> {
    const run = await runs.find(this.transactions.read, runId);
    if (run === undefined || run.agentId !== agentId || run.principal.id !== principal.id || hasEnded(run) || run.status !== 'running')
      throw fault(sessionService.openEdge, 'TURN_ENDED');
    return opened(run);
  }

  async #open(input: Open, call: Call): Promise<Opened> {
    const agent = await agents.find(this.transactions.read, input.agentId);
    if (agent === undefined) throw fault(sessionService.openEdge, 'AGENT_UNKNOWN');
    if (!agent.enabled) throw fault(sessionService.openEdge, 'AGENT_DISABLED');
    const session = await this.#session(agent, input, call);
    const whose = await this.whose.ofMessage(agent, session, { principal: input.principal, roles: [] });
    const prepared = await this.snapshots.prepare(whose, call);
    const now = new Date();
    const known = await runs.edgeOf(this.transactions.read, session.id, youngest(now));
    if (known !== undefined && known.run.fingerprint === seenBy(known.run, prepared) && now.getTime() - known.usedAt.getTime() < NOTED_MS)
      return opened(known.run);
    const run = await this.transactions.runFlushed(async (unit) => {
      if (!(await this.whose.hold(unit, whose))) throw fault(sessionService.openEdge, 'SESSION_UNKNOWN');
      const current = await runs.edgeOf(unit.sql, session.id, youngest(unit.now));
      const used =
        current === undefined
          ? await this.#begin(unit, { agent, session, prepared, principal: input.principal })
          : await this.#renew(unit, current.run, prepared);
      await runs.used(unit.sql, used.id, unit.now);
      return used;
    });
    return opened(run);
  }

  async #begin(unit: Unit, beginning: Beginning): Promise<RunRecord> {
    const run = newRun(beginning, unit.now, { id: uuidV7(unit.now.getTime()), kind: 'edge', status: 'running' });
    await runs.create(unit, run);
    await this.snapshots.give(unit, run.sessionId, beginning.prepared);
    return run;
  }

  async #renew(unit: Unit, run: RunRecord, prepared: Prepared): Promise<RunRecord> {
    const fingerprint = seenBy(run, prepared);
    if (run.fingerprint === fingerprint) return run;
    await this.snapshots.give(unit, run.sessionId, prepared);
    const fingerprints = withFingerprint(run.fingerprints, fingerprint);
    return runs.move(unit, { ...run, fingerprints }, { fingerprint, reason: 'composed anew' });
  }

  /** The token's own session, or the one that it names where that is still the same agent's and principal's. */
  async #session(agent: Agent, { tokenId, principal, sessionId }: Open, call: Call): Promise<SessionRecord> {
    if (sessionId !== null) {
      const session = await sessions.find(this.transactions.read, sessionId);
      if (session === undefined || session.agentId !== agent.id || session.principal.id !== principal.id)
        throw fault(sessionService.openEdge, 'SESSION_UNKNOWN');
      return session;
    }
    const place = { principal, adapter: 'mcp', endpoint: '', sceneId: tokenId, thread: undefined };
    const key = placeKey(agent.id, place);
    if (key === null) throw new Error('the id of a token is a place');
    const found = await sessions.findByConversation(this.transactions.read, key);
    if (found !== undefined) return found;
    const session = newSession(agent, { ...place, skills: null, mode: undefined, workspaceId: undefined }, call.startedAt);
    await this.transactions.run((unit) => sessions.create(unit.sql, session, key));
    return (await sessions.findByConversation(this.transactions.read, key)) ?? session;
  }
}

const youngest = (now: Date): Date => new Date(now.getTime() - RUN_AGE_MS);

/** Where a source could not be read, a run keeps what it saw while it could: a good list gives way to no bad one. */
function seenBy(run: RunRecord, { projection }: Prepared): string {
  return projection.degraded.length > 0 && run.degraded.length === 0 ? run.fingerprint : projection.fingerprint;
}

function opened({ id, originRunId, sessionId, agentId, projectId, fingerprint, degraded }: RunRecord): Opened {
  return { runId: id, originRunId, sessionId, agentId, projectId, fingerprint, degraded: [...degraded] };
}
