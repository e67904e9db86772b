import { randomBytes } from 'node:crypto';
import { Bus } from '@ambit/bus';
import { Fault, mcpBroker, mcpEdge, type JsonObject, type OfferKind, type Output } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { placeIn } from './domain/cursor.js';
import { CODE, isJson, RpcError, type Json } from './domain/json-rpc.js';
import { serverIn, shownPrompts, shownResources, type Offer, type ShownOffer } from './domain/shown-offers.js';
import type { Caller } from './edge-tokens.service.js';
import type { Exchange } from './exchange.js';
import { Worlds, type World } from './worlds.service.js';

/** Entries of all servers together; more are not listed. */
const MAX_OFFERS = 20_000;
const PAGE = 500;
const MAX_BYTES = 16 * 1024 * 1024;
const TRIES = 3;
/** The run has ended, or has another snapshot by now: nothing was asked. */
const MOVED: ReadonlySet<string> = new Set(['TOOL_NOT_IN_SNAPSHOT', 'TURN_ENDED']);

type Answered = Output<typeof mcpBroker.readResource>;
type Who = Pick<Exchange, 'caller' | 'naming'>;
type At = { readonly uri: string; readonly serverId?: string };

/** Prompts, resources and completions of the servers that a client's snapshot has, asked of them through the broker. */
@Injectable()
export class Contents {
  constructor(
    private readonly bus: Bus,
    private readonly worlds: Worlds,
  ) {}

  async listPrompts({ params, ...who }: Exchange): Promise<Json> {
    const shown = await this.#within(who, async (world) => shownPrompts(await this.#offers(world, 'prompts', who.caller), who.naming));
    return pageOf('prompts', shown, params['cursor']);
  }

  async listResources({ params, ...who }: Exchange): Promise<Json> {
    const shown = await this.#within(who, async (world) => shownResources(await this.#offers(world, 'resources', who.caller), who.naming));
    return pageOf('resources', shown, params['cursor']);
  }

  async listTemplates({ params, ...who }: Exchange): Promise<Json> {
    return pageOf('resourceTemplates', await this.#within(who, (world) => this.#offers(world, 'templates', who.caller)), params['cursor']);
  }

  async getPrompt(exchange: Exchange): Promise<Json> {
    const { name, arguments: values } = exchange.params;
    if (typeof name !== 'string') throw new RpcError(CODE.invalidParams, 'prompts/get names its prompt in params.name');
    return this.#within(exchange, async (world) => {
      const shown = shownPrompts(await this.#offers(world, 'prompts', exchange.caller), exchange.naming).find((one) => one.name === name);
      if (shown === undefined) throw new RpcError(CODE.invalidParams, `Unknown prompt: ${name.slice(0, 200)}`);
      const input = {
        ...scopeOf(world),
        requestId: newId(),
        serverId: shown.serverId,
        name: shown.own,
        ...textsIn(values),
        ...roundOf(exchange),
      };
      return this.#whole(await this.bus.call(mcpBroker.getPrompt, input, sendingOf(exchange)), exchange);
    });
  }

  async readResource(exchange: Exchange): Promise<Json> {
    const uri = uriIn(exchange.params);
    return this.#within(exchange, (world) =>
      this.#at(world, { naming: exchange.naming, uri }, async (at) => {
        const input = { ...scopeOf(world), requestId: newId(), ...at, ...roundOf(exchange) };
        return this.#whole(await this.bus.call(mcpBroker.readResource, input, sendingOf(exchange)), exchange);
      }),
    );
  }

  async complete(exchange: Exchange): Promise<Json> {
    const { ref, argument, context } = exchange.params;
    if (!isJson(ref) || !isJson(argument) || typeof argument['name'] !== 'string' || typeof argument['value'] !== 'string')
      throw new RpcError(CODE.invalidParams, 'completion/complete takes params.ref and params.argument with a name and a value');
    const wanted = { name: argument['name'], value: argument['value'] };
    return this.#within(exchange, async (world) => {
      const found = await this.#referred(world, exchange, ref);
      if (found === undefined) throw new RpcError(CODE.invalidParams, 'params.ref names no prompt or template that is listed here');
      const input = { ...scopeOf(world), requestId: newId(), ...found, argument: wanted, ...(isJson(context) ? { context } : {}) };
      return this.#whole(await this.bus.call(mcpBroker.completeArgument, input, sendingOf(exchange)), exchange);
    });
  }

  /** Has the stream of a client with a session tell of a resource, or no more. */
  async follow(exchange: Exchange, isOn: boolean): Promise<Json> {
    const { clientId, params } = exchange;
    if (clientId === null) throw new RpcError(CODE.methodNotFound, 'This revision subscribes with subscriptions/listen', { status: 404 });
    const uri = uriIn(params);
    if (isOn) await this.subscribe(exchange, uri);
    this.bus.signal(mcpEdge.resourceFollowed, { clientId, uri, isOn }, { keys: { clientId } });
    return {};
  }

  /** Has the session told of a resource for the next minutes. Others of the same session may follow it too, so that it is never ended, only not renewed. */
  subscribe(who: Who & { readonly signal?: AbortSignal }, uri: string): Promise<unknown> {
    return this.#within(who, (world) =>
      this.#at(world, { naming: who.naming, uri }, (at) =>
        this.bus.call(mcpBroker.subscribeResource, { ...scopeOf(world), ...at }, who.caller.identity),
      ),
    );
  }

  /** What a stream compares: another one, another list. */
  async version(kind: 'prompts' | 'resources', who: Who): Promise<string> {
    return this.#within(who, async (world) => {
      const { version } = await this.bus.call(mcpBroker.listOffers, { ...scopeOf(world), kind }, who.caller.identity);
      // Skills are read as resources, and have no notification of their own.
      return kind === 'prompts' ? version : `${version} ${world.record.skills.map(({ name, digest }) => `${name}@${digest}`).join(' ')}`;
    });
  }

  /** Asks where a resource is: at the server that its address names, at the only one that has it, or at the one that comes first. */
  async #at<T>(world: World, { naming, uri }: Pick<Who, 'naming'> & { readonly uri: string }, ask: (at: At) => Promise<T>): Promise<T> {
    const named = serverIn(uri);
    if (named !== undefined) {
      const server = world.record.servers.find(({ slug }) => slug === named.slug);
      if (server === undefined) throw unknownResource(uri);
      return ask({ uri: named.uri, serverId: server.serverId });
    }
    try {
      return await ask({ uri });
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== 'OFFER_AMBIGUOUS') throw error;
      const first = world.record.servers.find(({ slug }) => slug === naming.first);
      if (first === undefined) throw error;
      return ask({ uri, serverId: first.serverId });
    }
  }

  async #referred(world: World, { caller, naming }: Who, ref: Json): Promise<{ serverId: string; ref: JsonObject } | undefined> {
    if (ref['type'] === 'ref/prompt') {
      const found = shownPrompts(await this.#offers(world, 'prompts', caller), naming).find(({ name }) => name === ref['name']);
      return found === undefined ? undefined : { serverId: found.serverId, ref: { ...ref, name: found.own } };
    }
    const templates = await this.#offers(world, 'templates', caller);
    const rivals = templates.filter(({ definition }) => definition['uriTemplate'] === ref['uri']);
    const found = rivals.find(({ slug }) => slug === naming.first) ?? rivals[0];
    return found === undefined ? undefined : { serverId: found.serverId, ref };
  }

  async #offers(world: World, kind: OfferKind, { identity }: Caller): Promise<Offer[]> {
    for (let tries = 1; ; tries++) {
      try {
        const items: Offer[] = [];
        let version: string | undefined;
        for (let offset: number | null = 0; offset !== null && items.length < MAX_OFFERS;) {
          const input = { ...scopeOf(world), kind, offset, ...(version === undefined ? {} : { version }) };
          const page: Output<typeof mcpBroker.listOffers> = await this.bus.call(mcpBroker.listOffers, input, identity);
          items.push(...page.items);
          ({ version, next: offset } = page);
        }
        return items;
      } catch (error) {
        if (tries === TRIES || !(error instanceof Fault) || error.code !== 'OFFERS_MOVED') throw error;
      }
    }
  }

  /** In the caller's world; once more in the next one where it moved. */
  async #within<T>({ caller, naming }: Who, work: (world: World) => Promise<T>): Promise<T> {
    for (let tries = 0; ; tries++) {
      try {
        return await work(await this.worlds.of(caller, naming));
      } catch (error) {
        if (!(error instanceof Fault)) throw error;
        if (MOVED.has(error.code) && tries === 0) this.worlds.forget(caller);
        else throw asRpc(error);
      }
    }
  }

  async #whole({ result, large }: Answered, { caller }: Who): Promise<Json> {
    if (large === undefined) return result ?? {};
    if (large.bytes > MAX_BYTES) throw new RpcError(CODE.refused, `The result has ${large.bytes} bytes; at most ${MAX_BYTES} are sent`);
    const parts: Buffer[] = [];
    const { instanceId, requestId: operationId } = large;
    for (let offset: number | null = 0; offset !== null;) {
      const page: Output<typeof mcpBroker.resultPage> = await this.bus.call(
        mcpBroker.resultPage,
        { operationId, offset },
        { keys: { instanceId }, ...caller.identity },
      );
      parts.push(Buffer.from(page.data, 'base64'));
      offset = page.next;
    }
    const whole: unknown = JSON.parse(Buffer.concat(parts).toString('utf8'));
    return isJson(whole) ? whole : {};
  }
}

const newId = (): string => randomBytes(32).toString('hex');
const scopeOf = ({ run: { runId, sessionId } }: World) => ({ runId, sessionId });
const sendingOf = ({ caller, signal }: Exchange) => ({ ...caller.identity, signal });

function pageOf(key: string, offers: readonly (Offer | ShownOffer)[], cursor: unknown): Json {
  const from = placeIn(cursor);
  const items = offers.slice(from, from + PAGE).map(({ definition }) => definition);
  return { [key]: items, ...(from + PAGE < offers.length ? { nextCursor: String(from + PAGE) } : {}) };
}

function uriIn(params: Json): string {
  const { uri } = params;
  if (typeof uri !== 'string' || uri === '' || uri.length > 8_192)
    throw new RpcError(CODE.invalidParams, 'params.uri is the address of a resource');
  return uri;
}

function textsIn(values: unknown): { arguments?: Record<string, string> } {
  if (values === undefined) return {};
  const isTexts = isJson(values) && Object.values(values).every((value) => typeof value === 'string');
  if (!isTexts) throw new RpcError(CODE.invalidParams, 'params.arguments of a prompt are texts by name');
  return { arguments: Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)])) };
}

function roundOf({ params }: Exchange): { inputResponses?: JsonObject; requestState?: string } {
  const { inputResponses, requestState } = params;
  return { ...(isJson(inputResponses) ? { inputResponses } : {}), ...(typeof requestState === 'string' ? { requestState } : {}) };
}

const unknownResource = (uri: string) => new RpcError(CODE.invalidParams, `Unknown resource: ${uri.slice(0, 200)}`, { data: { uri } });

/** A fault as the server's own error where it is one. */
function asRpc(error: Fault): Error {
  const { data } = error;
  if (error.code === 'UPSTREAM_ERROR' && isJson(data) && typeof data['code'] === 'number')
    return new RpcError(data['code'], String(data['message']), data['data'] === undefined ? {} : { data: data['data'] });
  return error.code === 'NOT_OFFERED' ? new RpcError(CODE.invalidParams, error.message) : error;
}
