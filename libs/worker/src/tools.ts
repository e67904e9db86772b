import { createHash } from 'node:crypto';
import {
  Fault,
  platformFaults,
  refusals,
  subject,
  toolGateway,
  worker,
  type ContentBlock,
  type Returns,
  type ToolRegistration,
} from '@ambit/contracts';
import type { Msg, NatsConnection } from '@nats-io/nats-core';
import type { z } from 'zod';
import { ask } from './caller.js';
import { answerOver, signalOf } from './answer.js';
import { Results } from './results.js';
import { Staged } from './staged.js';

type Prepared = z.output<typeof worker.prepareTool.output>;
/** A call, with the files that were staged for it, by their digests. */
export type CallInput = z.output<typeof worker.callTool.input> & { readonly staged?: ReadonlyMap<string, Buffer> };

/** A tool that this worker brings. `prepare` has no effect and names what `run` will touch, for the gateway to decide on. */
export interface WorkerTool {
  readonly definition: Omit<ToolRegistration, 'exposure' | 'parallel' | 'version' | 'requiresConfirmation'> & Partial<ToolRegistration>;
  readonly prepare?: (input: {
    readonly sessionId: string;
    readonly workspaceId: string | null;
    readonly arguments: Readonly<Record<string, unknown>>;
  }) => Promise<Prepared>;
  readonly run: (input: CallInput, signal: AbortSignal) => Promise<ToolAnswer>;
  /** Whether this worker has the workspace in which the tool would act; a run whose workspace it has not is left to others. */
  readonly holds?: (place: { readonly sessionId: string; readonly workspaceId: string | null }) => Promise<boolean>;
  /** Ends what calls left running: those of a run that was cancelled, or all of them (null) when the worker leaves or is cut off. */
  readonly stop?: (runId: string | null) => Promise<void>;
  /** Ends what calls of a session left running, which was deleted. */
  readonly endSession?: (sessionId: string) => Promise<void>;
}

/** What a tool gives back. */
export interface ToolAnswer {
  readonly content: readonly ContentBlock[];
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
  /**
   * In place of an answer: it found only now that it needs a permission. With `nothingDone`, its word that the call had no effect, it is called again,
   * `granted`, where the mode or a person allows it; without, and where it asks again after a person's yes, the call ends as failed.
   */
  readonly asks?: { readonly reason: string; readonly nothingDone: boolean };
}

const REGISTER_MS = 5_000;
/** How long the platform takes a worker for alive that it does not hear. */
const LEASE_MS = 15_000;

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
  private readonly running = new Map<string, { readonly runId: string; readonly controller: AbortController }>();
  private readonly results = new Results();
  private readonly staged = new Staged();
  private timer: NodeJS.Timeout | undefined;
  private registeredAt = performance.now();
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
      handle: (input, remainingMs) => this.call(input, remainingMs),
    });
    answerOver(connection, worker.stageFile, {
      subject: subject(worker.stageFile, { agentId, workerId }),
      handle: (part) => Promise.resolve({ have: this.staged.add(part) }),
    });
    answerOver(connection, worker.resultPage, {
      subject: subject(worker.resultPage, { agentId, workerId }),
      handle: ({ operationId, offset }) => Promise.resolve(this.results.page(operationId, offset)),
    });
    connection.subscribe(subject(worker.cancelCall, { agentId, workerId }), { callback: (_error, message: Msg) => this.cancel(message) });
    connection.subscribe(subject(worker.endSession, { agentId, workerId }), {
      callback: (_error, message: Msg) => void this.endSession(message).catch(this.options.onError),
    });
    await this.register();
    this.timer = setInterval(() => void this.renew().catch(this.options.onError), REGISTER_MS);
  }

  /** Whether every tool could act where this run works. */
  async holds(place: { readonly sessionId: string; readonly workspaceId: string | null }): Promise<boolean> {
    const answers = await Promise.all(this.tools.map(async (tool) => (await tool.holds?.(place)) ?? true));
    return answers.every((holds) => holds);
  }

  /** Stops what runs for a run that was cancelled. */
  async stopRun(runId: string): Promise<void> {
    for (const { runId: of, controller } of this.running.values()) if (of === runId) controller.abort(new Error('the run was cancelled'));
    await this.stopLeft(runId);
  }

  /** Stops everything, and resolves when it has stopped. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.stopAll('the worker is shutting down');
    this.results.clear();
    this.staged.clear();
  }

  private async stopAll(reason: string): Promise<void> {
    for (const { controller } of this.running.values()) controller.abort(new Error(reason));
    await this.stopLeft(null);
  }

  private async stopLeft(runId: string | null): Promise<void> {
    const ends = await Promise.allSettled(this.tools.flatMap((tool) => (tool.stop === undefined ? [] : [tool.stop(runId)])));
    for (const end of ends) if (end.status === 'rejected') this.options.onError(end.reason);
  }

  /** A worker that the platform has not heard for as long as its lease lives is nobody's any more: what it runs ends. */
  private async renew(): Promise<void> {
    const beganAt = performance.now();
    try {
      await this.register();
      this.registeredAt = beganAt;
    } catch (error) {
      if (performance.now() - this.registeredAt > LEASE_MS - REGISTER_MS) await this.stopAll('the platform was out of reach');
      throw error;
    }
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

  private async call(input: CallInput, remainingMs: number): Promise<Returns<typeof worker.callTool>> {
    if (input.toolsetDigest !== this.digest) throw new Fault('TARGET_CHANGED', refusals.TARGET_CHANGED);
    const tool = this.find(input.tool);
    return this.results.once(input, async () => {
      const staged = this.staged.take(input.operationId);
      const controller = new AbortController();
      this.running.set(input.operationId, { runId: input.runId, controller });
      const timer = setTimeout(() => controller.abort(new Error('nobody waits for it any more')), Math.min(remainingMs, 2 ** 31 - 1));
      try {
        const { content, isError, ...more } = await tool.run({ ...input, staged }, controller.signal);
        return { ...more, content: [...content], isError: isError ?? false };
      } catch (error) {
        throw failureOf(error, controller.signal);
      } finally {
        clearTimeout(timer);
        this.running.delete(input.operationId);
      }
    });
  }

  private async endSession(message: Msg): Promise<void> {
    const { data } = worker.endSession.payload.safeParse(signalOf(message));
    if (data === undefined) return;
    await Promise.all(this.tools.flatMap((tool) => (tool.endSession === undefined ? [] : [tool.endSession(data.sessionId)])));
  }

  private cancel(message: Msg): void {
    const parsed = worker.cancelCall.payload.safeParse(signalOf(message));
    if (parsed.success) this.running.get(parsed.data.operationId)?.controller.abort(new Error(parsed.data.reason));
  }
}

/** Why a tool has no answer. Only its own signal proves that it was cancelled; an error of any name is one that it made itself. */
function failureOf(error: unknown, signal: AbortSignal): Fault {
  if (signal.aborted) return new Fault('CANCELLED', platformFaults.CANCELLED);
  if (error instanceof Fault && error.code !== 'CANCELLED') return error;
  const reason = (error instanceof Error ? error.message : String(error)).slice(0, 500);
  return new Fault('TOOL_FAILED', refusals.TOOL_FAILED, { reason }, `The tool failed: ${reason}`);
}
