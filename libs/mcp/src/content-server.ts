import type { Bus, Listening, Responder } from '@ambit/bus';
import { fault, mcpBroker, platformFault, type Parsed, type Returns } from '@ambit/contracts';
import type { CallServer, Pin } from './call-server.js';
import type { McpInstance } from './instance.js';
import type { CallOutcome } from './outcome.js';
import { sentenceOf } from './outcome.js';
import { Subscriptions, SUBSCRIPTIONS } from './subscriptions.js';

type Request = typeof mcpBroker.instanceRequest;
type Offered = typeof mcpBroker.instanceOffers;

const PAGE_BYTES = 256 * 1024;
const OPEN_REQUESTS = 500;
const CAPABILITY = {
  'prompts/get': 'prompts',
  'completion/complete': 'completions',
  'resources/read': 'resources',
  'resources/subscribe': 'resources',
  'resources/unsubscribe': 'resources',
  'skills/list': 'skills',
  'skills/get': 'skills',
} as const;

export interface ContentServerOptions {
  readonly instanceId: string;
  readonly instance: McpInstance;
  readonly calls: CallServer;
  readonly pin: Pin;
  readonly lease: { readonly revision: number; readonly isHeld: boolean };
  readonly bus: Bus;
  readonly onError?: (error: unknown) => void;
}

/** Answers what is asked of an instance beside tool calls: prompts, resources, completions, and who follows which resource. */
export class ContentServer {
  readonly subscriptions: Subscriptions;
  private readonly open = new Map<string, AbortController>();

  constructor(private readonly options: ContentServerOptions) {
    const { bus, pin, instance, onError } = options;
    this.subscriptions = new Subscriptions({
      session: () => instance.connected(),
      tell: (sessionId, uri, params) =>
        bus.signal(mcpBroker.resourceUpdated, { sessionId, serverId: pin.serverId, uri, params: { ...params } }, { keys: { sessionId } }),
      ...(onError === undefined ? {} : { onError }),
    });
  }

  answers(responder: Responder): readonly Listening[] {
    const keys = { instanceId: this.options.instanceId };
    return [
      responder.answer(mcpBroker.instanceRequest, (input, call) => this.request(input, call.remainingMs()), { keys }),
      responder.answer(mcpBroker.instanceOffers, (input) => this.offers(input), { keys }),
    ];
  }

  cancel(requestId: string): void {
    this.open.get(requestId)?.abort();
  }

  close(): void {
    this.subscriptions.close();
  }

  private async request(input: Parsed<Request>, remainingMs: number): Promise<Returns<Request>> {
    const { pin, lease, instance } = this.options;
    if (input.serverId !== pin.serverId || input.configGeneration !== pin.configGeneration || input.bindingHash !== pin.bindingHash)
      throw fault(mcpBroker.instanceRequest, 'TARGET_CHANGED');
    if (input.leaseRevision !== lease.revision || !lease.isHeld) throw fault(mcpBroker.instanceRequest, 'STALE_LEASE');
    if (this.open.size >= OPEN_REQUESTS || this.open.has(input.requestId))
      throw unavailable(`${OPEN_REQUESTS} requests run on this instance already, or this one does`);
    const session = await instance.connected().catch((error: unknown) => {
      throw unavailable(sentenceOf(error));
    });
    if (!session.offers(CAPABILITY[input.method])) throw fault(mcpBroker.instanceRequest, 'NOT_OFFERED');
    if (input.method === 'resources/subscribe' || input.method === 'resources/unsubscribe') return this.follow(input, input.method);
    const abort = new AbortController();
    this.open.set(input.requestId, abort);
    try {
      const outcome = await instance.call({
        request: { method: input.method, params: input.params },
        timeoutMs: Math.min(input.timeoutMs, remainingMs),
        abort,
        mayDispatch: () => (lease.isHeld ? undefined : 'The lease of this instance is not certainly held any more'),
      });
      return this.answer(input.requestId, outcome);
    } finally {
      this.open.delete(input.requestId);
    }
  }

  private async follow({ sessionId, params }: Parsed<Request>, method: string): Promise<Returns<Request>> {
    const uri = typeof params['uri'] === 'string' ? params['uri'] : '';
    if (sessionId === undefined) throw fault(mcpBroker.instanceRequest, 'NOT_OFFERED');
    if (method === 'resources/unsubscribe') return { result: { ended: this.subscriptions.unfollow(sessionId, uri) } };
    let isNew: boolean | undefined;
    try {
      isNew = await this.subscriptions.follow(sessionId, uri);
    } catch (error) {
      const code = typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'number' ? error.code : -32_603;
      throw fault(mcpBroker.instanceRequest, 'UPSTREAM_ERROR', { code, message: sentenceOf(error) });
    }
    if (isNew === undefined) throw fault(mcpBroker.instanceRequest, 'SUBSCRIPTION_LIMIT', { limit: SUBSCRIPTIONS });
    return { result: { isNew } };
  }

  private answer(requestId: string, outcome: CallOutcome): Returns<Request> {
    switch (outcome.status) {
      case 'completed':
      case 'tool_error': {
        const { result, large } = this.options.calls.fitted(requestId, outcome.result);
        return large === undefined ? { result } : { large: { digest: large.digest, bytes: large.bytes } };
      }
      case 'refused':
        throw fault(mcpBroker.instanceRequest, 'UPSTREAM_ERROR', {
          code: outcome.code,
          message: outcome.message.slice(0, 2_000),
          ...(boundedData(outcome.data) ? { data: outcome.data } : {}),
        });
      case 'not_dispatched':
        throw outcome.cause === 'cancelled' ? platformFault('CANCELLED') : unavailable(outcome.message);
      case 'uncertain':
        if (outcome.cause === 'cancelled') throw platformFault('CANCELLED');
        if (outcome.cause === 'timeout') throw fault(mcpBroker.instanceRequest, 'CALL_TIMEOUT');
        if (outcome.cause === 'too_large')
          throw fault(mcpBroker.instanceRequest, 'RESULT_TOO_LARGE', { limitBytes: outcome.limitBytes ?? 0 });
        throw unavailable(outcome.message);
    }
  }

  private async offers({ kind, offset }: Parsed<Offered>): Promise<Returns<Offered>> {
    const { instance } = this.options;
    const unreadable = (error: unknown): never => {
      throw fault(mcpBroker.instanceOffers, 'SERVER_UNAVAILABLE', { reason: sentenceOf(error) });
    };
    const session = await instance.connected().catch(unreadable);
    const offers = await instance.offers[kind].get().catch(unreadable);
    const all = [
      ...offers.items.map((definition) => ({ template: false, definition })),
      ...offers.templates.map((definition) => ({ template: true, definition })),
    ];
    const declared = { skills: session.offers('skills'), listChanged: session.announces(kind) };
    return { hash: offers.hash, declared, ...pageOf(all, offset, PAGE_BYTES) };
  }
}

const DATA_BYTES = 16 * 1024;
const boundedData = (data: unknown): boolean => data !== undefined && JSON.stringify(data).length <= DATA_BYTES;

function unavailable(reason: string): Error {
  return fault(mcpBroker.instanceRequest, 'SERVER_UNAVAILABLE', { reason });
}

/** Entries from `offset` on whose JSON fits `maxBytes`, at least one; `next` is null at the end. */
export function pageOf<T>(all: readonly T[], offset: number, maxBytes: number): { readonly items: T[]; readonly next: number | null } {
  const items: T[] = [];
  let bytes = 0;
  for (const item of all.slice(offset)) {
    bytes += Buffer.byteLength(JSON.stringify(item)) + 1;
    if (items.length > 0 && bytes > maxBytes) return { items, next: offset + items.length };
    items.push(item);
  }
  return { items, next: null };
}
