import { Bus } from '@ambit/bus';
import { digestOf, RESERVED_TABLE_VERSION } from '@ambit/capability';
import { buckets, epochKey, fault, Fault, toolGateway, type Exposure, type JsonObject, type Output, type Parsed } from '@ambit/contracts';
import { Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { Kvm } from '@nats-io/kv';
import { BuiltinRegistry } from './builtins/builtin.registry.js';
import { ToolsetRepository } from './toolset.repository.js';
import { Toolsets } from './toolsets.js';

const SHOWN: Readonly<Record<Parsed<typeof toolGateway.listTools>['purpose'], readonly Exposure[]>> = {
  ingress: ['user-configurable', 'system-model'],
  configurable: ['user-configurable'],
  diagnostic: ['diagnostic'],
};

/** The catalogue of tools that the gateway itself knows: its own, and what workers brought. It asks no server and changes nothing. */
@Injectable()
export class ToolService implements OnApplicationBootstrap {
  #epoch = 1;

  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(BuiltinRegistry) private readonly builtins: BuiltinRegistry,
    @Inject(Toolsets) private readonly toolsets: Toolsets,
    @Inject(ToolsetRepository) private readonly repository: ToolsetRepository,
  ) {}

  /** The built-ins' epoch moves when a release registers others. */
  async onApplicationBootstrap(): Promise<void> {
    const digest = digestOf(JSON.parse(JSON.stringify([RESERVED_TABLE_VERSION, this.builtins.registrations()])));
    this.#epoch = (await this.repository.move('builtin', digest, { now: new Date() })).epoch;
    const bucket = await new Kvm(this.bus.connection).open(buckets.epochs.name);
    await bucket.put(epochKey.epoch('tool-gateway', 'builtin', 'tools'), String(this.#epoch));
  }

  async list({ purpose, agentId }: Parsed<typeof toolGateway.listTools>): Promise<Output<typeof toolGateway.listTools>> {
    const tools = this.builtins.registrations().filter(({ exposure }) => SHOWN[purpose].includes(exposure));
    const brought = agentId === undefined || purpose === 'diagnostic' ? { epoch: 1, toolsets: [] } : await this.toolsets.list(agentId);
    // The sum moves when either does.
    return {
      epoch: this.#epoch + brought.epoch,
      reservedTableVersion: RESERVED_TABLE_VERSION,
      tools,
      toolsets: brought.toolsets,
      unavailable: [...this.builtins.unavailable],
    };
  }

  /** Runs a diagnostic tool for an administrator; every other name is one that does not exist. */
  async diagnose(name: string, input: JsonObject, sessionId: string): Promise<{ content: unknown }> {
    const builtin = this.builtins.find(name);
    if (builtin?.kind !== 'diagnostic') throw fault(toolGateway.askTool, 'TOOL_NOT_IN_SNAPSHOT');
    try {
      const { content, structuredContent } = await builtin.handler(input, sessionId);
      return { content: structuredContent ?? content };
    } catch (error) {
      if (error instanceof Fault && error.code === 'SESSION_UNKNOWN') throw fault(toolGateway.askTool, 'TOOL_NOT_IN_SNAPSHOT');
      throw error;
    }
  }
}
