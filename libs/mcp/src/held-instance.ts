import type { Bus, Listening, Responder } from '@ambit/bus';
import { mcpBroker, toolGateway } from '@ambit/contracts';
import type { PriorDiscovery } from '@modelcontextprotocol/client';
import { CallServer, type Pin } from './call-server.js';
import type { Catalogue } from './catalogue.js';
import { ContentServer } from './content-server.js';
import { McpInstance, type OfferedKind } from './instance.js';
import type { InstanceLease, InstanceLeases, LeaseView } from './lease.js';
import type { Offers } from './offers.js';
import { sentenceOf } from './outcome.js';
import type { ServerFacts } from './session.js';
import type { ServerTarget } from './target.js';

export interface HoldOptions {
  readonly instanceId: string;
  readonly pin: Pin;
  /** The process that takes the lease. */
  readonly holder: string;
  readonly target: ServerTarget;
  readonly verdict?: PriorDiscovery;
  readonly runsAs: string;
  /** The server may ask for completions of a model. @default false */
  readonly sampling?: boolean;
  /** Whose credentials it carries, where somebody can sign in to its server. */
  readonly credentials?: 'shared' | 'agent' | 'user' | undefined;
  readonly startTimeoutMs: number;
  readonly idleStopMs: number;
  readonly bus: Bus;
  readonly responder: Responder;
  readonly leases: InstanceLeases;
  /** Ends the start, wherever it is; its reason is the sentence of the failure. */
  readonly signal?: AbortSignal;
  /** Answered beside the calls, once the instance serves. */
  readonly alsoAnswer?: (held: HeldInstance) => readonly Listening[];
  readonly onRenewed?: () => void;
  readonly onCatalogue?: (catalogue: Catalogue) => void;
  readonly onOffers?: (kind: OfferedKind, offers: Offers) => void;
  readonly onDisconnected?: () => void;
  readonly onStale?: (reason: string | undefined) => void;
  /** It serves no more, for whatever reason. Called once, after everything ended. */
  readonly onEnded?: (reason: string) => void;
  readonly onError?: (error: unknown) => void;
  readonly explain?: () => string | undefined;
}

/** The server could not be started, or not in time. The message is one sentence for a person. */
export class StartFailed extends Error {
  override readonly name = 'StartFailed';
}

const IDLE_CHECK_MS = 5_000;
/** Why an instance ends that nobody used: the next call starts it again, as it was. */
const IDLE = 'It was not used for a while';
/** Why an instance ends whose process does: another one starts it again, as it was. */
export const SHUTTING_DOWN = 'The process that holds it is shutting down';
/** Why an instance ends that was started to read what its server offers, and that nobody may call. */
export const LISTED = 'What it offers was read';
/** Whether a server that ended for this reason is still what it was. */
export const isUnchangedBy = (reason: string | null): boolean => reason === IDLE || reason === SHUTTING_DOWN || reason === LISTED;

/** An instance under its lease: connected, listed, and answering its calls on the bus until it is stopped, idle or not ours any more. */
export class HeldInstance {
  readonly instance: McpInstance;
  readonly calls: CallServer;
  readonly content: ContentServer;
  private listening: readonly Listening[] = [];
  private idle: NodeJS.Timeout | undefined;
  private stopping: Promise<void> | undefined;

  private constructor(
    readonly options: HoldOptions,
    readonly lease: InstanceLease,
  ) {
    this.instance = new McpInstance({
      target: options.target,
      ...(options.verdict === undefined ? {} : { verdict: options.verdict }),
      connectTimeoutMs: options.startTimeoutMs,
      onCatalogue: (catalogue) => this.changed(catalogue),
      ...(options.onOffers === undefined ? {} : { onOffers: options.onOffers }),
      ...(options.onDisconnected === undefined ? {} : { onDisconnected: options.onDisconnected }),
      onResourceUpdated: (params) => this.content.subscriptions.updated(params),
      onConnected: (session) => this.content.subscriptions.connected(session),
      onAsked: (ask) => this.calls.asked(ask),
      onLog: (params) => this.calls.logged(params),
      ...(options.sampling === undefined ? {} : { sampling: options.sampling }),
      ...(options.onStale === undefined ? {} : { onStale: options.onStale }),
      ...(options.onError === undefined ? {} : { onError: options.onError }),
      ...(options.explain === undefined ? {} : { explain: options.explain }),
    });
    this.calls = new CallServer({
      instance: this.instance,
      pin: options.pin,
      lease,
      ask: async (gatewayId, ask, within) =>
        (await options.bus.call(toolGateway.askBack, ask, { keys: { gatewayId }, timeoutMs: within.timeoutMs, signal: within.signal }))
          .result,
      tellLog: (gatewayId, log) => options.bus.signal(toolGateway.callLogged, log, { keys: { gatewayId } }),
      credentials: options.credentials,
      tellProgress: (gatewayId, progress) => options.bus.signal(toolGateway.callProgress, progress, { keys: { gatewayId } }),
    });
    const { instanceId, pin, bus, onError } = options;
    this.content = new ContentServer({
      ...{ instanceId, instance: this.instance, calls: this.calls, pin, lease, bus },
      ...(onError === undefined ? {} : { onError }),
    });
  }

  /** Takes the lease, connects, lists and serves. Gives who holds it when that is another; throws {@link StartFailed}. */
  static async start(options: HoldOptions): Promise<HeldInstance | LeaseView> {
    for (let tries = 1; ; tries++) {
      // The lease may be lost before there is anything to stop.
      const at: { held?: HeldInstance; lost?: string } = {};
      const lease = await options.leases.take({
        instanceId: options.instanceId,
        facts: { holder: options.holder, isReady: false, runsAs: options.runsAs, protocol: '', catalogHash: '', tools: 0 },
        onRenewed: () => options.onRenewed?.(),
        onLost: (reason) => {
          at.lost = reason;
          void at.held?.stop(reason);
        },
      });
      if (lease === undefined) {
        const other = await options.leases.read(options.instanceId);
        // It was given back between the two questions.
        if (other !== undefined) return other;
        if (tries >= 5) throw new StartFailed('The lease of the instance keeps changing hands');
        continue;
      }
      const held = new HeldInstance(options, lease);
      at.held = held;
      const abort = (): void => void held.stop(sentenceOf(options.signal?.reason));
      options.signal?.addEventListener('abort', abort, { once: true });
      if (at.lost !== undefined) await held.stop(at.lost);
      if (options.signal?.aborted === true) abort();
      try {
        await held.serve();
      } finally {
        options.signal?.removeEventListener('abort', abort);
      }
      return held;
    }
  }

  /** What the server said of itself; undefined while it is not connected. */
  get facts(): ServerFacts | undefined {
    return this.instance.facts;
  }

  /** Aborts open calls, ends the connection and all that belongs to it, then gives the lease back. */
  stop(reason: string): Promise<void> {
    this.stopping ??= this.end(reason);
    return this.stopping;
  }

  /** Stops one call or request at the server; its own answer says how it ended. */
  cancel(id: string): void {
    this.calls.cancel(id);
    this.content.cancel(id);
  }

  private async serve(): Promise<void> {
    const { options } = this;
    try {
      const catalogue = await this.instance.catalogue.get();
      const keys = { instanceId: options.instanceId };
      this.listening = [
        options.responder.answer(mcpBroker.executeCall, (input, call) => this.calls.execute(input, call.remainingMs()), { keys }),
        options.responder.answer(mcpBroker.resultPage, (input) => this.calls.resultPage(input), { keys }),
        ...this.content.answers(options.responder),
        ...(options.alsoAnswer?.(this) ?? []),
      ];
      // Whoever is told of this owner must find it listening.
      await options.bus.connection.flush();
      await this.lease.tell({ isReady: true, ...factsOf(this.facts, catalogue) });
      if (this.stopping !== undefined || !this.lease.isHeld) throw new Error('The lease of the instance was lost while it started');
      this.idle = setInterval(
        () => {
          if (this.instance.idleMs >= options.idleStopMs && this.content.subscriptions.size === 0) void this.stop(IDLE);
        },
        Math.min(IDLE_CHECK_MS, options.idleStopMs),
      );
      this.idle.unref();
    } catch (error) {
      const reason = options.signal?.aborted === true ? sentenceOf(options.signal.reason) : (this.instance.problem ?? sentenceOf(error));
      await this.stop(reason);
      throw new StartFailed(reason, { cause: error });
    }
  }

  private changed(catalogue: Catalogue): void {
    this.lease.tell(factsOf(this.facts, catalogue)).catch((error: unknown) => this.options.onError?.(error));
    this.options.onCatalogue?.(catalogue);
  }

  private async end(reason: string): Promise<void> {
    clearInterval(this.idle);
    // At once, not one after the other: without NATS a subscription cannot drain, and the server must end all the same.
    await Promise.all([this.instance.stop(), ...this.listening.map((listening) => listening.close())]).catch((error: unknown) =>
      this.options.onError?.(error),
    );
    this.calls.close();
    this.content.close();
    await this.lease.release();
    this.options.onEnded?.(reason);
  }
}

function factsOf(
  facts: ServerFacts | undefined,
  catalogue: Catalogue,
): { readonly protocol: string; readonly catalogHash: string; readonly tools: number } {
  return { protocol: (facts?.protocolVersion ?? '').slice(0, 20), catalogHash: catalogue.hash, tools: catalogue.tools.length };
}
