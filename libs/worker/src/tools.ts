import { createHash } from 'node:crypto';
import { Fault, refusals, subject, toolGateway, worker, type ContentBlock, type ToolRegistration } from '@ambit/contracts';
import type { Msg, NatsConnection } from '@nats-io/nats-core';
import type { z } from 'zod';
import { ask } from './caller.js';
import { answerOver } from './answer.js';

type Prepared = z.output<typeof worker.prepareTool.output>;
type CallInput = z.output<typeof worker.callTool.input>;

/** A tool that this worker brings. `prepare` has no effect and names what `run` will touch, for the gateway to decide on. */
export interface WorkerTool {
  readonly definition: Omit<ToolRegistration, 'exposure' | 'parallel' | 'version' | 'requiresConfirmation'> & Partial<ToolRegistration>;
  readonly prepare?: (input: {
    readonly sessionId: string;
    readonly workspaceId: string | null;
    readonly arguments: Readonly<Record<string, unknown>>;
  }) => Promise<Prepared>;
  readonly run: (
    input: CallInput,
    signal: AbortSignal,
  ) => Promise<{ readonly content: readonly ContentBlock[]; readonly isError?: boolean }>;
}

const REGISTER_MS = 5_000;

export interface ToolHostOptions {
  readonly connection: NatsConnection;
  readonly agentId: string;
  readonly workerId: string;
  readonly pool: string;
  readonly onError: (error: unknown) => void;
}

/** Registers a worker's tools with the gateway and answers their calls. */
export class ToolHost {
  private readonly registrations: readonly ToolRegistration[];
  private readonly running = new Map<string, AbortController>();
  private timer: NodeJS.Timeout | undefined;
  readonly digest: string | null;

  constructor(
    private readonly options: ToolHostOptions,
    private readonly tools: readonly WorkerTool[],
  ) {
    this.registrations = tools.map(({ definition }) => ({
      parallel: false,
      version: 1,
      requiresConfirmation: false,
      ...definition,
      exposure: 'user-configurable' as const,
    }));
    const text = JSON.stringify([...this.registrations].sort((a, b) => (a.name < b.name ? -1 : 1)));
    this.digest = tools.length === 0 ? null : createHash('sha256').update(text).digest('hex');
  }

  async start(): Promise<void> {
    const { agentId, workerId, connection } = this.options;
    answerOver(connection, worker.prepareTool, {
      subject: subject(worker.prepareTool, { agentId, workerId }),
      handle: (input) => this.prepare(input),
    });
    answerOver(connection, worker.callTool, {
      subject: subject(worker.callTool, { agentId, workerId }),
      handle: (input) => this.call(input),
    });
    connection.subscribe(subject(worker.cancelCall, { agentId, workerId }), { callback: (_error, message: Msg) => this.cancel(message) });
    await this.register();
    this.timer = setInterval(() => void this.register().catch(this.options.onError), REGISTER_MS);
  }

  stop(): void {
    clearInterval(this.timer);
    for (const controller of this.running.values()) controller.abort();
  }

  private async register(): Promise<void> {
    const { agentId, workerId, pool, connection } = this.options;
    const input = { workerId, pool, toolsetDigest: this.digest };
    const answer = await ask(connection, toolGateway.registerWorker, { input, keys: { agentId } });
    if (answer.wantTools)
      await ask(connection, toolGateway.registerWorker, { input: { ...input, tools: [...this.registrations] }, keys: { agentId } });
  }

  private find(name: string): WorkerTool {
    const tool = this.tools.find((candidate) => candidate.definition.name === name);
    if (tool === undefined) throw new Fault('TOOL_GONE', refusals.TOOL_GONE);
    return tool;
  }

  private async prepare(input: z.output<typeof worker.prepareTool.input>): Promise<Prepared> {
    return (await this.find(input.tool).prepare?.(input)) ?? { paths: [], cwd: null, argv: [], command: null };
  }

  private async call(input: CallInput) {
    if (input.toolsetDigest !== this.digest) throw new Fault('TARGET_CHANGED', refusals.TARGET_CHANGED);
    const controller = new AbortController();
    this.running.set(input.operationId, controller);
    try {
      const result = await this.find(input.tool).run(input, controller.signal);
      return { content: [...result.content], isError: result.isError ?? false };
    } finally {
      this.running.delete(input.operationId);
    }
  }

  private cancel(message: Msg): void {
    const parsed = worker.cancelCall.payload.safeParse(message.json());
    if (parsed.success) this.running.get(parsed.data.operationId)?.abort(new Error(parsed.data.reason));
  }
}
