import { pattern, type ServiceUse } from '@ambit/contracts';
import type { Type } from '@nestjs/common';
import { Server, type CustomTransportStrategy, type MessageHandler } from '@nestjs/microservices';
import type { NatsConnection } from '@nats-io/nats-core';
import { handlingOf, routeOf, type Handling, type Registration } from './decorators.js';
import { Discovery } from './discovery.js';
import { Responder, type ResponderOptions } from './responder.js';
import { durableName, Workers } from './workers.js';

/** The part of a service's entry that is held against its handlers. */
export type HandledUse = Pick<ServiceUse, 'answers' | 'answersDynamically' | 'hears' | 'works' | 'listens'>;

export interface BusServerOptions extends ResponderOptions {
  /** The owner's name. */
  readonly name: string;
  readonly version: string;
  readonly use: HandledUse;
  /** Signals of `use` that no decorated method takes, because they are listened to key by key while the process runs. */
  readonly dynamic?: readonly { readonly subject: string }[] | undefined;
}

/** Where an instance of a class is found; a Nest application is one. */
export interface InstanceSource {
  get<T>(type: Type, options: { readonly strict: false }): T;
}

/** Nest's transport: our wire, our faults, and a close that loses no answer. */
export class BusServer extends Server implements CustomTransportStrategy {
  readonly responder: Responder;
  readonly workers: Workers;
  readonly #options: BusServerOptions;
  readonly #handlings = new Map<string, Handling>();
  #app: InstanceSource | undefined;
  #discovery: Discovery | undefined;

  constructor(options: BusServerOptions) {
    super();
    this.#options = options;
    this.responder = new Responder(options);
    this.workers = new Workers(options.connection, options.log, options.meaningOf);
  }

  /** Keeps what the decorators said; Nest calls it once a decorated method. */
  override addHandler(
    route: unknown,
    _handler: MessageHandler,
    _isEventHandler?: boolean,
    extras: Record<string | symbol, unknown> = {},
  ): void {
    const handling = typeof route === 'string' ? handlingOf(route, extras) : undefined;
    if (handling === undefined) throw new Error(`${String(route)}: decorate handlers with @Answers, @Hears, @Works or @Listens`);
    const key = routeOf(handling.registration);
    if (this.#handlings.has(key)) throw new Error(`two methods are decorated for "${key}"`);
    this.#handlings.set(key, handling);
  }

  /** Says where handlers live; before listening. */
  bindTo(app: InstanceSource): void {
    this.#app = app;
  }

  listen(callback: (error?: unknown) => void): void {
    this.#start().then(() => callback(), callback);
  }

  /** Takes no more, answers what was taken; the connection stays its owner's. */
  async close(): Promise<void> {
    await Promise.all([this.#discovery?.close(), this.responder.close(), this.workers.close()]);
  }

  override on(): never {
    throw new Error('the bus has no events of its own; watch the connection’s status');
  }

  override unwrap<T = NatsConnection>(): T {
    return this.#options.connection as T;
  }

  async #start(): Promise<void> {
    const handlings = [...this.#handlings.values()];
    const problems = differences(
      this.#options,
      handlings.map(({ registration }) => registration),
    );
    if (problems.length > 0) throw new Error(`${this.#options.name} does not fit its entry in services.ts:\n${problems.join('\n')}`);
    for (const handling of handlings) await this.#serve(handling.registration, this.#methodOf(handling));
    this.#discovery = new Discovery({
      connection: this.#options.connection,
      name: this.#options.name,
      version: this.#options.version,
      endpoints: this.responder.endpoints,
    });
    await this.#options.connection.flush();
  }

  /** The instance's own method: Nest's pipeline around it would cost a fifth of the throughput and bring nothing that contracts do not. */
  #methodOf({ owner, method }: Handling): (data: unknown, context: unknown) => Promise<never> {
    if (this.#app === undefined) throw new Error('call bindTo(app) before the bus server listens');
    const instance = this.#app.get<Record<string | symbol, (data: unknown, context: unknown) => Promise<never>>>(owner, { strict: false });
    const handler = instance[method];
    if (handler === undefined) throw new Error(`${owner.name} has no method ${String(method)}`);
    if (hasEnhancers(owner) || hasEnhancers(handler))
      throw new Error(
        `${owner.name}.${String(method)}: guards, interceptors, pipes and filters do not run on the bus; decide in the service`,
      );
    return handler.bind(instance);
  }

  async #serve(registration: Registration, handler: (data: unknown, context: unknown) => Promise<never>): Promise<void> {
    const { name, use } = this.#options;
    switch (registration.kind) {
      case 'answers':
        this.responder.answer(registration.contract, handler);
        return;
      case 'listens':
        this.responder.listen(registration.contract, handler);
        return;
      case 'hears': {
        const { everyReplica, ...options } = registration.options;
        const durable = everyReplica === true ? undefined : durableName(name, registration.contract, use.hears);
        await this.workers.consume(registration.contract, handler, { ...options, durable, filters: [pattern(registration.contract)] });
        return;
      }
      case 'works':
        await this.workers.consume(registration.contract, handler, {
          concurrency: 8,
          maxDeliveries: 3,
          ...registration.options,
          durable: durableName(name, registration.contract, use.works),
          filters: [pattern(registration.contract)],
        });
    }
  }
}

const ENHANCERS = ['__guards__', '__interceptors__', '__pipes__', '__exceptionFilters__'];

function hasEnhancers(target: object): boolean {
  return ENHANCERS.some((name) => Reflect.hasMetadata(name, target));
}

/** Names what is declared and not handled, and what is handled and not declared. */
function differences(options: Pick<BusServerOptions, 'use' | 'dynamic'>, registrations: readonly Registration[]): string[] {
  const problems: string[] = [];
  const dynamic = new Set(options.dynamic?.map(({ subject }) => subject));
  for (const kind of ['answers', 'hears', 'works', 'listens'] as const) {
    const declared = new Set(options.use[kind].map(({ subject }) => subject));
    const handled = new Set(registrations.filter((one) => one.kind === kind).map(({ contract }) => contract.subject));
    for (const subject of declared)
      if (!handled.has(subject) && !dynamic.has(subject)) problems.push(`- ${kind} ${subject}: no method is decorated for it`);
    for (const subject of handled) if (!declared.has(subject)) problems.push(`- ${kind} ${subject}: handled, but not declared`);
  }
  return problems;
}
