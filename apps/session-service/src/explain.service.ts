import { readSnapshot } from '@ambit/capability';
import type { Call } from '@ambit/bus';
import { fault, platformFault, sessionService, type Explanation, type Parsed, type Principal, type Returns } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { agents } from './agent.repository.js';
import { explainCapability, type Question } from './domain/explain.js';
import type { Whose } from './domain/world.js';
import { FenceReader } from './fence.service.js';
import { Ingress } from './ingress.service.js';
import type { RunRecord } from './domain/run-state.js';
import { runs } from './run.repository.js';
import { sessions, type SessionRecord } from './session.repository.js';
import { snapshots } from './snapshot.repository.js';
import { Transactions } from './transactions.repository.js';
import { WhoseReader } from './whose.service.js';

type Asked = Parsed<typeof sessionService.explain>;

/** Runs of a session that are looked through for whom is asked about. */
const RUNS = 50;
/** Skills that one answer holds. */
const COMMANDS = 2_000;

@Injectable()
export class ExplainService {
  constructor(
    private readonly transactions: Transactions,
    private readonly ingress: Ingress,
    private readonly whose: WhoseReader,
    private readonly fences: FenceReader,
  ) {}

  /** Composes anew, so that the reasons are those of the world as it is; what the session was given stands beside them. */
  async explain(asked: Asked, call: Call): Promise<Explanation> {
    const session = asked.sessionId === undefined ? undefined : await sessions.find(this.transactions.read, asked.sessionId);
    if (asked.sessionId !== undefined && session === undefined) throw fault(sessionService.explain, 'SESSION_UNKNOWN');
    const run = session === undefined ? undefined : await this.#runOf(session, asked.principal);
    const whose = await this.#whose(asked, { session, run });
    const { composition, seen } = await this.ingress.explain(whose, call);
    const { agent, ancestors } = whose;
    return explainCapability({
      kind: asked.kind,
      name: asked.name,
      agent,
      ancestors,
      composition,
      servers: seen.heads.ok ? seen.heads.value.servers : [],
      session:
        session === undefined
          ? null
          : { id: session.id, mode: session.mode, ...(await this.#given(session, asked.principal === undefined ? 'newest' : run)) },
    });
  }

  /** What people are offered to call for by name in a session, as its next run would have it. */
  async commands(sessionId: string, call: Call): Promise<Returns<typeof sessionService.listCommands>> {
    const session = await sessions.find(this.transactions.read, sessionId);
    if (session === undefined) throw fault(sessionService.listCommands, 'SESSION_UNKNOWN');
    const whose = await this.#whose({}, { session, run: await this.#runOf(session, undefined) });
    const skills = await this.ingress.forPeople(whose, call);
    return { items: skills.map(({ name, description, origin, owner }) => ({ name, description, origin, owner })).slice(0, COMMANDS) };
  }

  /** The newest run of the session, or of whom is asked about in it: it knows in which roles its sender wrote. */
  async #runOf(session: SessionRecord, principal: Principal | undefined): Promise<RunRecord | undefined> {
    const found = await runs.list(this.transactions.read, { sessionId: session.id, limit: RUNS });
    return principal === undefined ? found[0] : found.find((run) => run.principal.id === principal.id);
  }

  async #whose(
    { agentId, principal }: Pick<Asked, 'agentId' | 'principal'>,
    { session, run }: { readonly session: SessionRecord | undefined; readonly run: RunRecord | undefined },
  ): Promise<Whose> {
    const id = session?.agentId ?? agentId;
    if (id === undefined) throw platformFault('INVALID_INPUT', { issues: [{ path: 'agentId', message: 'name a session or an agent' }] });
    const agent = await agents.find(this.transactions.read, id);
    if (agent === undefined) throw fault(sessionService.explain, 'AGENT_UNKNOWN');
    if (session === undefined) return { agent, ancestors: [], session: null, subject: null, principalId: null, activeSkills: [] };
    const sender = { principal: principal ?? run?.principal ?? session.principal, roles: run?.roles ?? [] };
    return this.whose.ofMessage(agent, session, sender);
  }

  async #given(
    session: SessionRecord,
    run: RunRecord | 'newest' | undefined,
  ): Promise<Pick<NonNullable<Question['session']>, 'given' | 'revoked'>> {
    const mapping =
      run === 'newest'
        ? await snapshots.newestMapping(this.transactions.read, session.id)
        : run && (await snapshots.mapping(this.transactions.read, session.id, run.fingerprint));
    const row = mapping === undefined ? undefined : await snapshots.find(this.transactions.read, mapping.fingerprint);
    if (mapping === undefined || row === undefined) return { given: null, revoked: [] };
    const fences = await this.fences.of(Object.keys(mapping.owners));
    return {
      given: { fingerprint: mapping.fingerprint, record: readSnapshot(row.text, mapping.fingerprint) },
      revoked: Object.entries(mapping.owners).flatMap(([owner, fence]) => ((fences.get(owner) ?? 0) > fence ? [owner] : [])),
    };
  }
}
