import { mcpBroker, sessionService, type Agent, type Input, type Output, type Principal, type Server } from '@ambit/contracts';
import { randomUUID } from 'node:crypto';
import { HandWorker } from './by-hand.js';
import { Counting } from './counting.js';
import { startSystem, type System, type SystemOptions } from './system.js';

export const alice: Principal = { id: 'user:alice', kind: 'person', issuer: 'local', display: 'Alice' };
export const bob: Principal = { id: 'user:bob', kind: 'person', issuer: 'local', display: 'Bob' };

type Rules = NonNullable<NonNullable<Input<typeof sessionService.putAgent>['policy']>['rules']>;

/** Every tool of counting servers may be used, but `count` of the server `asking` asks. */
export const RULES: Rules = [
  { decision: 'allow', tool: 'mcp__*' },
  { decision: 'ask', tool: 'mcp__asking__*' },
];

/** A running system with counting servers, and what every scenario does in it. */
export class Scene {
  private constructor(
    readonly system: System,
    readonly counting: Counting,
  ) {}

  static async start(options: SystemOptions = {}): Promise<Scene> {
    const counting = await Counting.start();
    try {
      return new Scene(await startSystem(options), counting);
    } catch (error) {
      await counting.stop();
      throw error;
    }
  }

  get bus(): System['bus'] {
    return this.system.bus;
  }

  async stop(): Promise<void> {
    await this.system.stop();
    await this.counting.stop();
  }

  /** A counting server that is connected and has listed its tools. */
  async server(slug: string, more: Partial<Input<typeof mcpBroker.putServer>> = {}): Promise<Server> {
    const { id } = await this.bus.call(mcpBroker.putServer, this.counting.server(slug, more));
    return this.bus.call(mcpBroker.testServer, { id });
  }

  /** An agent of its own with a pool, so that tests of one file do not meet. */
  async agent(policy: Input<typeof sessionService.putAgent>['policy'] = {}, id = `agent-${randomUUID().slice(0, 8)}`): Promise<Agent> {
    const agent = await this.bus.call(sessionService.putAgent, {
      id,
      policy: { servers: null, skills: null, plugins: null, rules: RULES, ...policy },
    });
    await this.bus.call(sessionService.ensurePool, { agentId: agent.id, pool: 'shared' });
    return agent;
  }

  /** A worker of an agent whose messages the test sends. */
  async worker(agent: Pick<Agent, 'id'>): Promise<HandWorker> {
    return new HandWorker(await this.system.connectWorker({ agentId: agent.id }), agent.id);
  }

  send(
    agent: Pick<Agent, 'id'>,
    more: Partial<Input<typeof sessionService.receiveMessage>> = {},
  ): Promise<Output<typeof sessionService.receiveMessage>> {
    return this.bus.call(sessionService.receiveMessage, {
      principal: alice,
      agentId: agent.id,
      sceneId: randomUUID(),
      content: 'Please.',
      idempotencyKey: randomUUID(),
      ...more,
    });
  }

  /** The pending decisions of a session, oldest first. */
  async pending(sessionId: string): Promise<Output<typeof sessionService.listInteractions>['items']> {
    return (await this.bus.call(sessionService.listInteractions, { sessionId, status: 'pending' })).items;
  }

  runsOf(sessionId: string): Promise<Output<typeof sessionService.listRuns>['items']> {
    return this.bus.call(sessionService.listRuns, { sessionId }).then(({ items }) => items);
  }
}
