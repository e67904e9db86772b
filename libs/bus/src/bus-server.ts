import { pattern, type ServiceUse } from '@ambit/contracts';
import { Server, type CustomTransportStrategy, type MessageHandler } from '@nestjs/microservices';
import type { NatsConnection } from '@nats-io/nats-core';
import { isObservable, lastValueFrom } from 'rxjs';
import { registrationOf, routeOf, type Registration } from './decorators.js';
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

/** Nest's transport: our wire, our faults, and a close that loses no answer. */
export class BusServer extends Server implements CustomTransportStrategy {
  readonly responder: Responder;
  readonly workers: Workers;
  readonly #options: BusServerOptions;
  readonly #registrations = new Map<string, { readonly registration: Registration; readonly handler: MessageHandler }>();
  #discovery: Discovery | undefined;

  constructor(options: BusServerOptions) {
    super();
    this.#options = options;
    this.responder = new Responder(options);
    this.workers = new Workers(options.connection, options.log);
  }

  /** Keeps what the decorators said; Nest calls it once a decorated method. */
  override addHandler(
    route: unknown,
    handler: MessageHandler,
    _isEventHandler?: boolean,
    extras: Record<string | symbol, unknown> = {},
  ): void {
    const registration = typeof route === 'string' ? registrationOf(route, extras) : undefined;
    if (registration === undefined) throw new Error(`${String(route)}: decorate handlers with @Answers, @Hears, @Works or @Listens`);
    const key = routeOf(registration);
    if (this.#registrations.has(key)) throw new Error(`two methods are decorated for "${key}"`);
    this.#registrations.set(key, { registration, handler });
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
    const problems = differences(
      this.#options,
      [...this.#registrations.values()].map(({ registration }) => registration),
    );
    if (problems.length > 0) throw new Error(`${this.#options.name} does not fit its entry in services.ts:\n${problems.join('\n')}`);
    for (const { registration, handler } of this.#registrations.values()) await this.#serve(registration, direct(handler));
    this.#discovery = new Discovery({
      connection: this.#options.connection,
      name: this.#options.name,
      version: this.#options.version,
      endpoints: this.responder.endpoints,
    });
    await this.#options.connection.flush();
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

/** What Nest's pipeline gives is the method's own result, unless an interceptor made it a stream. */
function direct(handler: MessageHandler): (data: unknown, context: unknown) => Promise<never> {
  return async (data, context) => {
    const result: unknown = await handler(data, context);
    return (isObservable(result) ? await lastValueFrom(result, { defaultValue: undefined }) : result) as never;
  };
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
