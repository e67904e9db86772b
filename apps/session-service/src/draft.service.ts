import { randomUUID } from 'node:crypto';
import type { Call } from '@ambit/bus';
import { fault, sessionService, type Output, type Parsed } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { agents, withFresh } from './agent.repository.js';
import { doerOf } from './doer.js';
import { drafts, type DraftRecord } from './draft.repository.js';
import type { Prepared } from './ingress.service.js';
import { newSession } from './new-session.js';
import { SkillChoice } from './skill-choice.service.js';
import { snapshots } from './snapshot.repository.js';
import { Snapshots } from './snapshot.service.js';
import { Transactions, type Unit } from './transactions.repository.js';
import { WhoseReader } from './whose.service.js';

/** How long a draft waits for its first message. */
const DRAFT_MS = 10 * 60_000;

/** A client is for whom, and by whose token. */
interface Client {
  readonly principalId: string;
  readonly actorId: string | null;
}

/** Snapshots of sessions that do not exist yet, each for one client and one use. */
@Injectable()
export class DraftService {
  constructor(
    private readonly transactions: Transactions,
    private readonly snapshots: Snapshots,
    private readonly whose: WhoseReader,
    private readonly skills: SkillChoice,
  ) {}

  async create(input: Parsed<typeof sessionService.createDraft>, call: Call): Promise<Output<typeof sessionService.createDraft>> {
    return withFresh(async () => {
      const agent = await agents.find(this.transactions.read, input.agentId);
      if (agent === undefined) throw fault(sessionService.createDraft, 'AGENT_UNKNOWN');
      if (!agent.enabled) throw fault(sessionService.createDraft, 'AGENT_DISABLED');
      await this.skills.refuseUnknown(sessionService.createDraft, { agent, skills: input.skills }, call);
      const whose = await this.whose.ofMessage(agent, newSession(agent, input, call.startedAt), input);
      const { projection, fences } = await this.snapshots.prepare(whose, call);
      const { fingerprint, degraded } = projection;
      return this.transactions.run(async (unit) => {
        await agents.hold(unit.sql, agent);
        const expiresAt = new Date(unit.now.getTime() + DRAFT_MS);
        // Random, not ordered: an id that can be guessed would be anybody's.
        const id = randomUUID();
        const client: Client = { principalId: input.principal.id, actorId: call.actor?.id ?? null };
        await drafts.create(unit, { id, ...client, agentId: agent.id, opening: input, fingerprint, owners: fences, degraded, expiresAt });
        unit.audit(
          { action: 'draft.create', target: `agent:${agent.id}`, projectId: agent.projectId, afterDigest: fingerprint },
          doerOf(call),
        );
        return { draftId: id, agentId: agent.id, fingerprint, expiresAt: expiresAt.toISOString() };
      });
    });
  }

  /** The client's draft with its snapshot, as far as it is not used and not over. Another's is none. */
  async find(id: string, { principalId, actorId }: Client): Promise<(DraftRecord & { readonly prepared: Prepared }) | undefined> {
    const draft = await drafts.find(this.transactions.read, id, new Date());
    if (draft === undefined || draft.principalId !== principalId || draft.actorId !== actorId) return undefined;
    const { fingerprint, agentId, owners, degraded } = draft;
    const row = await snapshots.find(this.transactions.read, fingerprint);
    if (row === undefined) return undefined;
    const { tools, skills } = row;
    const projection = { fingerprint, agentId, owners: Object.keys(owners), tools, skills, degraded };
    return { ...draft, prepared: { projection, text: null, fences: owners, memo: null } };
  }

  /** Uses a draft up, in the transaction that makes its session. */
  take(unit: Unit, id: string): Promise<boolean> {
    return drafts.take(unit, id);
  }

  async dropExpired(now: Date): Promise<void> {
    await drafts.dropExpired(this.transactions.read, now);
  }
}
