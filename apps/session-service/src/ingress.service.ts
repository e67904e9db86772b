import { Bus, type Call } from '@ambit/bus';
import {
  BoundedMap,
  cacheKey,
  canonicalRecord,
  compose,
  ownersOf,
  sha256Hex,
  type Composition,
  type SubjectField,
  type Switches,
} from '@ambit/capability';
import { Fault, mcpBroker, pluginRegistry, skillStore, toolGateway, type Agent } from '@ambit/contracts';
import { LOG, Metrics, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import { agents } from './agent.repository.js';
import { Catalogues } from './catalogues.service.js';
import { compositionOf, keyOfWorld, versionsOf, type Answered, type Audience, type Seen, type Whose } from './domain/world.js';
import { FenceReader, fencesOf } from './fence.service.js';
import { Permits } from './permits.service.js';
import { Transactions } from './transactions.repository.js';

/** A composed world, by its fingerprint. The text is there only where it was composed just now. */
export interface Projection {
  readonly fingerprint: string;
  readonly agentId: string;
  readonly owners: readonly string[];
  readonly tools: number;
  readonly skills: number;
  /** Sources that could not be read: what they offer is missing. */
  readonly degraded: readonly string[];
}
export interface Prepared {
  readonly projection: Projection;
  readonly text: string | null;
  /** The fence of each owner, as it stood before anything was asked. */
  readonly fences: Readonly<Record<string, number>>;
  /** Under what it is to be remembered, once it is stored. */
  readonly memo: { readonly world: string; readonly key: string; readonly consulted: readonly SubjectField[] } | null;
}

const KEPT = 2_000;
const PROJECTS = 200;
const ASK_MS = 3_000;
const TRIES = 3;

/** Gathers what an agent's run may read from its owners, and composes it, unless the same world was composed before. */
@Injectable()
export class Ingress {
  /** By world: which fields of the subject its filters read. */
  readonly #consulted = new BoundedMap<string, readonly SubjectField[]>(KEPT);
  /** By world and those fields: what was composed. */
  readonly #projections = new BoundedMap<string, Projection>(KEPT);
  /** By project: what plugins contributed when they were asked last. */
  readonly #slots = new BoundedMap<string, Seen['slots']>(PROJECTS);
  readonly #composed: ReturnType<Metrics['counter']>;
  /** Compositions made by this process; a request on an unchanged world adds none. */
  compositions = 0;

  constructor(
    private readonly bus: Bus,
    private readonly catalogues: Catalogues,
    private readonly fences: FenceReader,
    private readonly transactions: Transactions,
    private readonly permits: Permits,
    @Inject(LOG) private readonly log: Logger,
    metrics: Metrics,
  ) {
    this.#composed = metrics.counter({ name: 'ambit_compositions_total', help: 'Snapshots composed; an unchanged world adds none' });
  }

  async prepare(whose: Whose, within?: Call): Promise<Prepared> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#prepare(whose, within);
      } catch (error) {
        if (attempt === TRIES || !(error instanceof Fault) || !MOVED.has(error.code)) throw error;
      }
    }
  }

  /** Answers from memory from now on. Only what is stored may be remembered: a fingerprint alone can be read by nobody. */
  remember({ projection, memo }: Prepared): void {
    if (memo === null) return;
    this.#consulted.set(memo.world, memo.consulted);
    this.#projections.set(memo.key, projection);
  }

  /** Composes whatever is asked for next anew. */
  forget(): void {
    this.#consulted.clear();
    this.#projections.clear();
  }

  /** Composes anew with every server's tools, allowed or not, for whoever wants to know the reasons. */
  explain(asked: Whose, within?: Call): Promise<{ readonly composition: Composition; readonly seen: Seen }> {
    return this.#whole(asked, 'model', within);
  }

  /** The skills that people may call for. */
  async forPeople(asked: Whose, within?: Call): Promise<Composition['record']['skills']> {
    return (await this.#whole(asked, 'person', within)).composition.record.skills;
  }

  async #whole(
    asked: Whose,
    audience: Audience,
    within: Call | undefined,
  ): Promise<{ readonly composition: Composition; readonly seen: Seen }> {
    const seen = await this.#see(asked, within);
    const whose = { ...asked, subject: await this.permits.of(asked, seen, within) };
    const heads = seen.heads.ok ? seen.heads.value.servers : [];
    const catalogues = await this.catalogues.of(heads, { policies: 'all', ...(within === undefined ? {} : { within }) });
    const switches = switchesOf(seen);
    const skills = switches.mcpSkills ? await this.catalogues.skillsOf(heads, within) : new Map();
    return { composition: compose(compositionOf(whose, seen, { switches, catalogues, skills, audience })), seen };
  }

  async #prepare(asked: Whose, within: Call | undefined): Promise<Prepared> {
    const fences = await this.fences.all();
    const seen = await this.#see(asked, within);
    const whose = { ...asked, subject: await this.permits.of(asked, seen, within) };
    const switches = switchesOf(seen);
    const versions = versionsOf(whose, seen, switches);
    const world = keyOfWorld(versions);
    const consulted = this.#consulted.get(world);
    if (consulted !== undefined) {
      const projection = this.#projections.get(cacheKey(versions, whose.subject, consulted));
      if (projection !== undefined) return { projection, text: null, fences: fencesOf(projection.owners, fences), memo: null };
    }
    const heads = seen.heads.ok ? seen.heads.value.servers : [];
    const policies = [whose.agent, ...whose.ancestors].map(({ policy }) => policy);
    const catalogues = await this.catalogues.of(heads, { policies, ...(within === undefined ? {} : { within }) });
    this.compositions++;
    this.#composed.inc();
    const skillsOfServers = switches.mcpSkills ? await this.catalogues.skillsOf(heads, within) : new Map();
    const composition = compose(compositionOf(whose, seen, { switches, catalogues, skills: skillsOfServers }));
    const text = canonicalRecord(composition.record);
    const { tools, skills } = composition.record;
    const projection = {
      fingerprint: sha256Hex(text),
      agentId: whose.agent.id,
      owners: ownersOf(composition.record),
      tools: tools.length,
      skills: skills.length,
      degraded: versions.failed.map(sourceName),
    };
    const memo = { world, key: cacheKey(versions, whose.subject, composition.consulted), consulted: composition.consulted };
    return { projection, text, fences: fencesOf(projection.owners, fences), memo };
  }

  async #see({ agent, ancestors, principalId }: Whose, within: Call | undefined): Promise<Seen> {
    const sending = { ...(within === undefined ? {} : { within }), timeoutMs: ASK_MS };
    const { projectId, id: agentId, policy } = agent;
    const [tools, heads, skills, slots, knownAgents] = await Promise.all([
      this.#ask('tools', this.bus.call(toolGateway.listTools, { purpose: 'ingress', agentId }, sending)),
      this.#ask(
        'servers',
        this.bus.call(mcpBroker.catalogueHeads, { projectId, agentId, ...(principalId === null ? {} : { principalId }) }, sending),
      ),
      this.#ask('skills', this.bus.call(skillStore.effectiveSkills, { agentId, plugins: policy.plugins }, sending)),
      this.#plugins(projectId, sending),
      this.#known([agent, ...ancestors]),
    ]);
    return { tools, heads, skills, slots, knownAgents };
  }

  /** Which other agents there are matters only where a policy names subagents. */
  async #known(chain: readonly Agent[]): Promise<Seen['knownAgents']> {
    return chain.some(({ policy }) => Object.keys(policy.subagents).length > 0) ? agents.enabled(this.transactions.read) : [];
  }

  /**
   * What plugins contribute stays as it was last told while their registry is away: it alone could change it, and what it takes away moves
   * fences that do not pass through here.
   */
  async #plugins(projectId: string, sending: { readonly within?: Call; readonly timeoutMs: number }): Promise<Seen['slots']> {
    const asked = await this.#ask('plugins', this.bus.call(pluginRegistry.pluginSlots, { projectId }, sending));
    if (asked.ok) this.#slots.set(projectId, asked);
    return asked.ok ? asked : (this.#slots.get(projectId) ?? asked);
  }

  /** A source that fails takes nothing from the others; what is missing because of it says so. */
  async #ask<T>(source: string, asked: Promise<T>): Promise<Answered<T>> {
    try {
      return { ok: true, value: await asked };
    } catch (error) {
      this.log.warn({ error, source }, 'a source of the catalogue did not answer; composing without it');
      return { ok: false, detail: error instanceof Fault ? error.message : 'the source did not answer' };
    }
  }
}

/** A list changed between its head and its page: the heads say which it is now. */
const MOVED: ReadonlySet<string> = new Set(['CATALOGUE_MOVED', 'OFFERS_MOVED']);

/** Whether skills of servers are on, their owner says; where it does not answer there are no servers either. */
function switchesOf({ heads }: Seen): Switches {
  return { skills: true, mcp: true, mcpSkills: heads.ok && heads.value.mcpSkills };
}

/** `skill-store.user.skills` → `skills`, as people are told. */
function sourceName(feature: string): string {
  return feature.split('.').at(-1) ?? feature;
}
