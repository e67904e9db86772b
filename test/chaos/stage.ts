import { mcpBroker, services, type ServiceName } from '@ambit/contracts';
import { startGuarded, type GuardedProcess } from '@ambit/embedded';
import { until } from '@ambit/testing';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { http } from '../system/http.js';
import { Scene } from '../system/scene.js';
import type { Kill } from './books.js';
import { VICTIMS, type PlannedKill, type Victim } from './plan.js';
import { Family, processes, type Seen } from './processes.js';
import { pick } from './random.js';
import { Supervisor, type Member } from './supervisor.js';

const REPLICAS = 2;
const WORKERS = 2;
// The edge holds nothing: MCP clients of its own would say nothing of calls that workers make.
const NAMES = VICTIMS.filter((name): name is Extract<Victim, ServiceName> => Object.hasOwn(services, name));
const STDIO = ['one', 'two'];
const REMOTE = 'far';
const workerProgram = fileURLToPath(new URL('../../examples/worker-sdk/dist/worker.js', import.meta.url));
const PATIENCE_MS = 20_000;
const PAUSE_MS = 100;
const WHOLE_WITHIN_MS = 180_000;

/** The whole system, two of everything, its servers and workers, and who may be killed of them. */
export class Stage {
  readonly tools = [...STDIO, REMOTE].map((slug) => `mcp__${slug}__count`);
  readonly #members = new Map<Victim, Member[]>();

  private constructor(
    readonly scene: Scene,
    readonly agentId: string,
    readonly supervisor: Supervisor,
    readonly family: Family,
    private readonly stops: (() => Promise<unknown>)[],
  ) {}

  static async open(say: (line: string) => void): Promise<Stage> {
    const family = new Family();
    const stops: (() => Promise<unknown>)[] = [async () => family.stop()];
    try {
      const scene = await Scene.start({ replicas: Object.fromEntries(NAMES.map((name) => [name, REPLICAS])) });
      stops.push(() => scene.stop());
      for (const slug of STDIO) await scene.server(slug);
      const remote = await scene.counting.remote(REMOTE);
      stops.push(() => remote.stop());
      const { id } = await scene.bus.call(mcpBroker.putServer, remote.server);
      await scene.bus.call(mcpBroker.testServer, { id });
      const agent = await scene.agent();
      const stage = new Stage(scene, agent.id, new Supervisor(say), family, stops);
      stage.#supervise();
      await stage.#startWorkers();
      return stage;
    } catch (error) {
      for (const stop of stops.reverse()) await stop();
      throw error;
    }
  }

  /** Kills one process of that kind; waits for one where all of them are away. Undefined where none came back in time. */
  async kill({ victim, which }: PlannedKill): Promise<Kill | undefined> {
    for (
      const end = performance.now() + PATIENCE_MS;
      performance.now() < end;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    ) {
      const alive = this.#killable(victim);
      if (alive.length === 0) continue;
      const { label, kill } = pick(alive, which);
      this.family.look();
      const at = Date.now();
      await kill();
      return { victim, label, at };
    }
    return undefined;
  }

  /** Says which processes nobody looks after any more, ends everything, and says what is still there. */
  async close(): Promise<string[]> {
    const orphans = await this.family.orphans();
    await this.supervisor.close();
    for (const stop of this.stops.splice(1).reverse()) await stop();
    const remaining = await this.family.remaining();
    this.family.stop();
    return [...new Set([...orphans, ...remaining])];
  }

  /** Resolves when everything that was killed serves again. */
  async isWhole(): Promise<void> {
    const members = [...this.#members.values()].flat();
    await until(() => members.every((member) => this.supervisor.isUp(member)), WHOLE_WITHIN_MS);
  }

  #killable(victim: Victim): { readonly label: string; readonly kill: () => Promise<unknown> }[] {
    if (victim === 'stdio-server')
      return this.#stdioServers().map(({ pid }) => ({ label: `stdio-server ${pid}`, kill: async () => process.kill(pid, 'SIGKILL') }));
    const up = (this.#members.get(victim) ?? []).filter((member) => this.supervisor.isUp(member));
    return up.map((member) => ({ label: member.label, kill: () => this.supervisor.kill(member) }));
  }

  #stdioServers(): Seen[] {
    const ours = new Set(this.family.living().map(({ pid }) => pid));
    return processes().filter(({ pid, command }) => ours.has(pid) && /counting-server\.mjs$/.test(command));
  }

  #supervise(): void {
    const { system } = this.scene;
    for (const name of NAMES) {
      for (let replica = 1; replica <= REPLICAS; replica++) {
        const service = system.process(name, replica);
        this.#add(name, { label: service.label, start: () => service.start(), kill: () => service.kill(), ended: () => service.exited });
      }
    }
    for (const [victim, server] of [
      ['nats-server', system.nats],
      ['postgres', system.database],
    ] as const)
      this.#add(victim, { label: victim, start: () => server.restart(), kill: () => server.kill(), ended: () => server.exited });
  }

  async #startWorkers(): Promise<void> {
    const { system } = this.scene;
    for (let index = 1; index <= WORKERS; index++) {
      const label = `worker-${index}`;
      const { body } = await http(system, 'POST /v1/worker', { body: { name: label, agentId: this.agentId } });
      const credentials = join(system.logFolder, `${label}.creds`);
      await writeFile(credentials, String(body['credentials']), { mode: 0o600 });
      let running: GuardedProcess | undefined;
      const member: Member = {
        label,
        start: async () => {
          running = startGuarded({
            command: process.execPath,
            args: [workerProgram],
            output: { file: join(system.logFolder, `${label}.log`) },
            env: {
              ...process.env,
              NODE_OPTIONS: '',
              NATS_URL: system.natsUrl,
              AMBIT_CREDS: credentials,
              AMBIT_AGENT: this.agentId,
              AMBIT_CONCURRENCY: '8',
            },
          });
        },
        kill: async () => {
          if (running !== undefined) process.kill(running.pid, 'SIGKILL');
          return running?.exited;
        },
        ended: () => running?.exited ?? Promise.resolve(),
      };
      await member.start();
      this.stops.push(async () => running?.stop());
      this.#add('worker', member);
    }
  }

  #add(victim: Victim, member: Member): void {
    this.#members.set(victim, [...(this.#members.get(victim) ?? []), member]);
    this.supervisor.follow(member);
  }
}
