import { createHash, randomUUID } from 'node:crypto';
import { jsonSchemaOf, type Rpc } from '@ambit/contracts';
import type { Msg, NatsConnection, Subscription } from '@nats-io/nats-core';
import type { EndpointStats } from './endpoint-stats.js';

export interface DiscoveryOptions {
  readonly connection: NatsConnection;
  readonly name: string;
  readonly version: string;
  /** Read at every question: endpoints come and go. */
  readonly endpoints: readonly EndpointStats[];
}

/** Answers `$SRV.PING|INFO|STATS[.name[.id]]` as ADR-32 asks, so that any NATS tool finds the service. */
export class Discovery {
  readonly id = randomUUID();
  readonly #started = new Date();
  readonly #options: DiscoveryOptions;
  readonly #subscriptions: Subscription[];
  readonly #hashes = new Map<Rpc, string>();

  constructor(options: DiscoveryOptions) {
    this.#options = options;
    const answers = { PING: () => this.#identity('ping'), INFO: () => this.#info(), STATS: () => this.#stats() };
    this.#subscriptions = Object.entries(answers).flatMap(([verb, answer]) =>
      [`$SRV.${verb}`, `$SRV.${verb}.${options.name}`, `$SRV.${verb}.${options.name}.${this.id}`].map((subject) =>
        options.connection.subscribe(subject, { callback: (error, message) => this.#reply(error, message, answer) }),
      ),
    );
  }

  async close(): Promise<void> {
    if (this.#options.connection.isClosed()) return;
    await Promise.all(this.#subscriptions.map((subscription) => subscription.drain()));
  }

  #reply(error: Error | null, message: Msg, answer: () => object): void {
    if (error === null && message.reply?.startsWith('_INBOX.') === true) message.respond(JSON.stringify(answer()));
  }

  #identity(kind: 'ping' | 'info' | 'stats'): object {
    const { name, version } = this.#options;
    return { type: `io.nats.micro.v1.${kind}_response`, name, id: this.id, version, metadata: {} };
  }

  #info(): object {
    const endpoints = this.#options.endpoints.map(({ contract, subject }) => ({
      ...endpointName(contract, subject),
      metadata: { contract: contract.subject, schema: this.#hashOf(contract) },
    }));
    return { ...this.#identity('info'), description: `${this.#options.name} of Ambit`, endpoints };
  }

  #stats(): object {
    const endpoints = this.#options.endpoints.map((endpoint) => {
      const processing = Math.round(endpoint.processingMs * 1e6);
      return {
        ...endpointName(endpoint.contract, endpoint.subject),
        num_requests: endpoint.requests,
        num_errors: endpoint.errors,
        last_error: endpoint.lastError,
        processing_time: processing,
        average_processing_time: endpoint.requests === 0 ? 0 : Math.round(processing / endpoint.requests),
      };
    });
    return { ...this.#identity('stats'), started: this.#started.toISOString(), endpoints };
  }

  /** Tells two instances with different contracts apart; made when first asked for. */
  #hashOf(contract: Rpc): string {
    let hash = this.#hashes.get(contract);
    if (hash === undefined) {
      const schemas = [contract.input, contract.output].map(jsonSchemaOf);
      hash = createHash('sha256').update(JSON.stringify(schemas)).digest('hex').slice(0, 16);
      this.#hashes.set(contract, hash);
    }
    return hash;
  }
}

function endpointName(contract: Rpc, subject: string): { name: string; subject: string; queue_group: string } {
  const [, , , version, noun, verb] = contract.subject.split('.');
  return { name: `${noun}-${verb}-${version}`, subject, queue_group: contract.owner };
}
