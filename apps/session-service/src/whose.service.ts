import { policyInSlot } from '@ambit/capability';
import type { Agent, Principal } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { agents } from './agent.repository.js';
import { subjectOf, type Ancestor, type Whose } from './domain/world.js';
import { runs } from './run.repository.js';
import { sessions, type SessionRecord } from './session.repository.js';
import { tape } from './tape.repository.js';
import { Transactions, type Unit } from './transactions.repository.js';

type Held = Pick<Whose, 'agent' | 'ancestors' | 'session'>;

/** Puts together for whom a run is composed: its agent, the agents above, the session's choice, and what filters may read. */
@Injectable()
export class WhoseReader {
  constructor(private readonly transactions: Transactions) {}

  /**
   * Holds everything that was composed from as it was read until the transaction ends: agents by id, those of others too, then the first one's session,
   * which is the order in which everybody locks. False where the session is gone; {@link Overtaken} where anything changed.
   */
  async hold(unit: Unit, own: Held, ...others: readonly Held[]): Promise<boolean> {
    const { session } = own;
    const chain = new Map([own, ...others].flatMap(({ agent, ancestors }) => [agent, ...ancestors]).map((one) => [one.id, one]));
    for (const id of [...chain.keys()].sort()) {
      const one = chain.get(id);
      if (one !== undefined) await agents.hold(unit.sql, one);
    }
    return session === null || sessions.hold(unit.sql, session);
  }

  async ofMessage(
    agent: Agent,
    session: SessionRecord,
    sender: { readonly principal: Principal; readonly roles: readonly string[] },
  ): Promise<Whose> {
    const { adapter, scene, sceneId } = session;
    return {
      agent,
      ancestors: await this.#ancestors(session),
      session,
      subject: subjectOf({ adapter, scene, sceneId, ...sender }),
      principalId: sender.principal.id,
      activeSkills: [],
    };
  }

  /** As its run stands now: with the skills that its model has opened. Undefined where run, session or agent is gone. */
  async ofRun(runId: string): Promise<Whose | undefined> {
    const run = await runs.find(this.transactions.read, runId);
    if (run === undefined) return undefined;
    const [agent, session] = await Promise.all([
      agents.find(this.transactions.read, run.agentId),
      sessions.find(this.transactions.read, run.sessionId),
    ]);
    if (agent === undefined || session === undefined) return undefined;
    const whose = await this.ofMessage(agent, session, run);
    return { ...whose, activeSkills: await tape.openedSkills(this.transactions.read, run.originRunId) };
  }

  /** The agents of the sessions above, each as it binds the session below it. An agent that sessions use cannot be deleted, so each is there. */
  async #ancestors(session: SessionRecord): Promise<Ancestor[]> {
    const above = await sessions.ancestors(this.transactions.read, session);
    const found = await Promise.all(above.map(({ agentId }) => agents.find(this.transactions.read, agentId)));
    return found.flatMap((agent, index) => {
      if (agent === undefined) return [];
      const below = index === 0 ? session : above[index - 1];
      const slot = below?.slot ?? null;
      return [{ ...agent, slot, policy: policyInSlot(agent.policy, slot) }];
    });
  }
}
