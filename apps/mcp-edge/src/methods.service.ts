import { Injectable } from '@nestjs/common';
import { Calls } from './call.service.js';
import { Contents } from './content.service.js';
import { placeIn } from './domain/cursor.js';
import { CODE, RpcError, type Json } from './domain/json-rpc.js';
import type { Exchange } from './exchange.js';
import { Skills } from './skills.service.js';
import { Worlds } from './worlds.service.js';

/** Tools of one page of the list. */
const PAGE = 500;

/** What may be asked, whatever the revision. */
@Injectable()
export class Methods {
  readonly #methods: Readonly<Record<string, (exchange: Exchange) => Promise<Json>>>;

  constructor(
    private readonly worlds: Worlds,
    calls: Calls,
    contents: Contents,
    skills: Skills,
  ) {
    this.#methods = {
      'tools/list': (exchange) => this.#listTools(exchange),
      'tools/call': (exchange) => calls.call(exchange),
      'prompts/list': (exchange) => contents.listPrompts(exchange),
      'prompts/get': (exchange) => contents.getPrompt(exchange),
      'resources/list': (exchange) => contents.listResources(exchange),
      'resources/templates/list': (exchange) => contents.listTemplates(exchange),
      'resources/read': async (exchange) => (await skills.read(exchange)) ?? contents.readResource(exchange),
      'resources/directory/read': (exchange) => skills.readDirectory(exchange),
      'skills/list': (exchange) => skills.list(exchange),
      'skills/get': (exchange) => skills.get(exchange),
      'resources/subscribe': (exchange) => contents.follow(exchange, true),
      'resources/unsubscribe': (exchange) => contents.follow(exchange, false),
      'completion/complete': (exchange) => contents.complete(exchange),
    };
  }

  /** The result of a request. Throws {@link RpcError}, or a fault of whoever was asked. */
  handle(exchange: Exchange): Promise<Json> {
    const { method } = exchange;
    const handle = Object.hasOwn(this.#methods, method) ? this.#methods[method] : undefined;
    if (handle === undefined) throw methodUnknown(method);
    return handle(exchange);
  }

  async #listTools({ caller, naming, params }: Exchange): Promise<Json> {
    const { tools } = await this.worlds.of(caller, naming);
    const from = placeIn(params['cursor']);
    const page = tools.slice(from, from + PAGE).map(({ definition }) => definition);
    return { tools: page, ...(from + PAGE < tools.length ? { nextCursor: String(from + PAGE) } : {}) };
  }
}

function methodUnknown(method: string): RpcError {
  return new RpcError(CODE.methodNotFound, `There is no method ${method.slice(0, 100)} here`, { status: 404 });
}
