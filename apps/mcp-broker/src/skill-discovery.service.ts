import { Bus } from '@ambit/bus';
import { digestOf, isObject, RECORD_BOUNDS, sha256Hex } from '@ambit/capability';
import { mcpBroker, type JsonObject, type Output, type ServerSkill } from '@ambit/contracts';
import { InstanceLeases, sentenceOf } from '@ambit/mcp';
import { CONFIG, LOG, type Logger } from '@ambit/service';
import { Inject, Injectable, type BeforeApplicationShutdown } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import type { BrokerConfig } from './config.js';
import { Epochs } from './epochs.js';
import { OfferRepository } from './offer.repository.js';
import { ServerRepository } from './server.repository.js';
import type { ServerRow } from './server.view.js';
import type { SkillModule } from './skills/entry.js';

const ALL_MS = 30_000;
const FIRST_RETRY_MS = 1_000;
/** No failure is remembered for longer. */
const LAST_RETRY_MS = 30_000;
const SERVERS = 1_000;
const MARGIN_MS = 1_000;

interface Known {
  /** Moves when what is being read must not be kept any more. */
  generation: number;
  running: Promise<void> | undefined;
  isDue: boolean;
  /** The list of resources that the skills were found in last. */
  resources: string | undefined;
  announces: boolean;
  retryMs: number;
  timer: NodeJS.Timeout | undefined;
}
type At = { readonly row: ServerRow; readonly instanceId: string };

/** Finds the skills of servers, again whenever their resources may have changed, and forgets them with the connection they came over. A failure costs the server nothing else. */
@Injectable()
export class SkillDiscovery implements BeforeApplicationShutdown {
  private readonly known = new Map<string, Known>();
  private readonly leases: InstanceLeases;
  private module: () => Promise<SkillModule | undefined> = () => Promise.resolve(undefined);
  private isOver = false;

  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(ServerRepository) private readonly servers: ServerRepository,
    @Inject(OfferRepository) private readonly offers: OfferRepository,
    @Inject(Epochs) private readonly epochs: Epochs,
    @Inject(CONFIG) private readonly config: BrokerConfig,
    @Inject(LOG) private readonly log: Logger,
  ) {
    this.leases = new InstanceLeases(bus.connection);
  }

  /** Where the code of skills is to be had while they are switched on. */
  useSwitch(module: () => Promise<SkillModule | undefined>): void {
    this.module = module;
  }

  /** The resources of a server were read: on a new connection, or because they may have changed. */
  async resourcesRead(row: ServerRow, instanceId: string, hash: string | null): Promise<void> {
    if (this.isOver || (await this.module()) === undefined) return;
    const known = this.of(row.id);
    // A server that announces nothing is read again and again; its skills only when the list is another one, or after their own time.
    if (hash !== null && known.resources === hash && !known.announces) return;
    this.look({ row, instanceId }, known);
  }

  /** What came over a connection goes with it; what is still on its way is not kept. */
  async closed(serverId: string): Promise<void> {
    this.drop(serverId);
    const moved = await this.offers.clear(serverId, 'skills', new Date());
    if (moved !== undefined) await this.epochs.publish(moved);
  }

  /** Looks at every server that runs: skills were just switched on. */
  async all(): Promise<void> {
    for (const { row, instanceId } of await this.servers.running(SERVERS)) this.look({ row, instanceId }, this.of(row.id));
  }

  async forgetAll(): Promise<void> {
    for (const serverId of [...this.known.keys()]) this.drop(serverId);
    const moved = await this.offers.clearAll('skills', new Date());
    for (const one of moved) await this.epochs.publish(one);
  }

  /** A skill was read that is another one by now. */
  async again(row: ServerRow, instanceId: string): Promise<void> {
    if ((await this.module()) !== undefined && !this.isOver) this.look({ row, instanceId }, this.of(row.id));
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.isOver = true;
    const running = [...this.known.values()].flatMap((known) => known.running ?? []);
    for (const serverId of [...this.known.keys()]) this.drop(serverId);
    await Promise.all(running);
  }

  private of(serverId: string): Known {
    const fresh: Known = {
      generation: 0,
      running: undefined,
      isDue: false,
      resources: undefined,
      announces: false,
      retryMs: FIRST_RETRY_MS,
      timer: undefined,
    };
    const known = this.known.get(serverId) ?? fresh;
    this.known.set(serverId, known);
    return known;
  }

  private drop(serverId: string): void {
    const known = this.known.get(serverId);
    if (known === undefined) return;
    known.generation++;
    known.isDue = false;
    clearTimeout(known.timer);
    this.known.delete(serverId);
  }

  /** One look at a time for each server; what comes meanwhile makes one more. */
  private look(at: At, known: Known): void {
    clearTimeout(known.timer);
    known.timer = undefined;
    if (known.running !== undefined) {
      known.isDue = true;
      return;
    }
    known.running = this.find(at, known).finally(() => {
      known.running = undefined;
      if (!known.isDue || this.known.get(at.row.id) !== known) return;
      known.isDue = false;
      this.look(at, known);
    });
  }

  private async find(at: At, known: Known): Promise<void> {
    const { generation } = known;
    const { row } = at;
    try {
      const module = await this.module();
      if (module === undefined) return;
      const { resources, declared, hash } = await this.resourcesOf(at.instanceId);
      known.announces = declared.listChanged;
      const kind = declared.skills ? 'listed' : 'searched';
      const signal = AbortSignal.timeout(ALL_MS);
      const built = await module.builders.of(kind)({ resources, signal, ask: (...asked) => this.ask(at, asked) });
      for (const note of built.notes.slice(0, 20)) this.log.warn({ slug: row.slug, reason: note }, 'a skill of a server is left out');
      // A connection that closed meanwhile took them with it.
      if (known.generation !== generation || this.known.get(row.id) !== known) return;
      known.resources = hash;
      known.retryMs = FIRST_RETRY_MS;
      await this.save(row, built.skills);
      if (!known.announces) this.later(at, known, this.config.AMBIT_MCP_SKILLS_TTL_MS);
    } catch (error) {
      if (known.generation !== generation || this.known.get(row.id) !== known || this.isOver) return;
      this.log.warn(
        { slug: row.slug, reason: sentenceOf(error) },
        'the skills of a server could not be found; everything else of it stands',
      );
      this.later(at, known, known.retryMs);
      known.retryMs = Math.min(known.retryMs * 2, LAST_RETRY_MS);
    }
  }

  private later(at: At, known: Known, ms: number): void {
    if (this.isOver) return;
    clearTimeout(known.timer);
    known.timer = setTimeout(() => this.look(at, known), ms).unref();
  }

  private async resourcesOf(instanceId: string): Promise<{
    readonly resources: JsonObject[];
    readonly declared: Output<typeof mcpBroker.instanceOffers>['declared'];
    readonly hash: string;
  }> {
    const resources: JsonObject[] = [];
    for (let offset = 0; ;) {
      const page = await this.bus.call(mcpBroker.instanceOffers, { kind: 'resources', offset }, { keys: { instanceId } });
      for (const { template, definition } of page.items) if (!template) resources.push(definition);
      if (page.next === null) return { resources, declared: page.declared, hash: page.hash };
      offset = page.next;
    }
  }

  private async ask(
    { row, instanceId }: At,
    [method, params, timeoutMs]: readonly ['resources/read' | 'skills/list', JsonObject, number],
  ): Promise<JsonObject> {
    const lease = await this.leases.read(instanceId);
    if (lease === undefined) throw new Error('the server is not connected any more');
    const { id: serverId, configGeneration, bindingHash } = row;
    const pin = { serverId, configGeneration, bindingHash, leaseRevision: lease.revision };
    const { result } = await this.bus.call(
      mcpBroker.instanceRequest,
      { ...pin, requestId: sha256Hex(randomUUID()), method, params, timeoutMs },
      { keys: { instanceId }, timeoutMs: timeoutMs + MARGIN_MS },
    );
    if (!isObject(result)) throw new Error('the answer is larger than a skill may be');
    return result;
  }

  private async save(row: ServerRow, skills: readonly ServerSkill[]): Promise<void> {
    const list = { kind: 'skills' as const, hash: digestOf(skills, RECORD_BOUNDS), items: skills };
    const moved = await this.offers.save(row.id, { ...list, generation: row.configGeneration, at: new Date() });
    if (moved !== undefined) await this.epochs.publish(moved);
  }
}
