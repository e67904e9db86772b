import { randomUUID } from 'node:crypto';
import { Bus } from '@ambit/bus';
import { Egress } from '@ambit/egress';
import { Fault, mcpBroker, sessionService, toolGateway } from '@ambit/contracts';
import { CONFIG, LOG, type Logger } from '@ambit/service';
import { Inject, Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import type { AdminApiConfig } from './config.js';
import { verdictOf, type Attempt } from './domain/delivery.js';
import { NotifyRepository, type ClaimedDelivery } from './notify.repository.js';
import { WebhookSender } from './webhook.sender.js';

const LOOK_MS = 1_000;
/** What a receiver may take to answer. */
const ANSWER_MS = 10_000;
/** Longer than the 30 s that an attempt may take altogether: 10 s each to read, to sign, to send; the rest is to settle it. Then it is anybody's. */
const LEASE_MS = 45_000;
/** Requests that one webhook gets at once from this process, and all of them together: a slow receiver keeps no other waiting. */
const AT_ONCE = { perSink: 4, limit: 32 };
const TRIM_MS = 3_600_000;
const KEPT_MS = 30 * 86_400_000;

/** Delivers what webhooks are to be told. Each attempt is claimed in the database, so that replicas share the work and a crash loses nothing. */
@Injectable()
export class DeliveryService implements OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly #sender: WebhookSender;
  readonly #running = new Map<Promise<void>, string>();
  #timers: NodeJS.Timeout[] = [];
  #looking: Promise<void> | undefined;
  #isWanted = false;
  #isClosing = false;

  constructor(
    private readonly bus: Bus,
    private readonly deliveries: NotifyRepository,
    @Inject(CONFIG) config: AdminApiConfig,
    @Inject(LOG) private readonly log: Logger,
  ) {
    this.#sender = new WebhookSender(new Egress(config.AMBIT_EGRESS_ALLOW), { withinMs: ANSWER_MS });
  }

  onApplicationBootstrap(): void {
    this.#timers = [setInterval(() => this.wake(), LOOK_MS), setInterval(() => void this.#trim(), TRIM_MS)];
    void this.#trim();
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.#isClosing = true;
    for (const timer of this.#timers) clearInterval(timer);
    await this.#looking;
    await Promise.all(this.#running.keys());
  }

  /** Looks for what is due, now and not only when the clock says so. */
  wake(): void {
    this.#isWanted = true;
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined));
  }

  async #look(): Promise<void> {
    try {
      while (this.#isWanted && !this.#isClosing && this.#running.size < AT_ONCE.limit) {
        this.#isWanted = false;
        const busy = [...new Set(this.#running.values())];
        const { perSink, limit } = AT_ONCE;
        const claimed = await this.deliveries.claim({
          claim: randomUUID(),
          leaseMs: LEASE_MS,
          busy,
          perSink,
          limit: limit - this.#running.size,
        });
        for (const one of claimed) {
          const done: Promise<void> = this.#deliver(one).finally(() => {
            this.#running.delete(done);
            this.wake();
          });
          this.#running.set(done, one.sinkId);
        }
      }
    } catch (error) {
      this.log.warn({ error }, 'what webhooks are to be told could not be read; it is tried again');
    }
  }

  async #deliver(delivery: ClaimedDelivery): Promise<void> {
    try {
      const attempt = await this.#attempt(delivery);
      const { attempts, ageMs, eventId, sinkId } = delivery;
      const verdict = verdictOf(attempt, { attempts, ageMs, chance: Math.random() });
      // Somebody else has it meanwhile, and says how it ended.
      if (!(await this.deliveries.settle(delivery, verdict))) return;
      if (verdict.status === 'failed')
        this.log.error({ eventId, sinkId, attempts, reason: verdict.error }, 'a webhook was not told: given up');
      else if (verdict.status === 'pending')
        this.log.warn({ eventId, sinkId, attempts, reason: verdict.error }, 'a webhook was not told yet');
    } catch (error) {
      // Not written down, so it is due again once the lease lapsed.
      this.log.warn({ error, eventId: delivery.eventId }, 'an attempt to tell a webhook broke off; it is made again');
    }
  }

  async #attempt(delivery: ClaimedDelivery): Promise<Attempt> {
    try {
      const data = await this.#dataOf(delivery);
      if (data === undefined) return { kind: 'obsolete', reason: 'it was decided or resolved, or is gone' };
      const { event, eventId, projectId, url, secret: name, occurredAt } = delivery;
      const body = JSON.stringify({ type: event, timestamp: occurredAt.toISOString(), data });
      const timestamp = Math.floor(Date.now() / 1_000);
      const text = `${eventId}.${timestamp}.${body}`;
      const { signature } = await this.bus.call(mcpBroker.signWithSecret, { projectId, name, text });
      const headers = {
        'content-type': 'application/json',
        'user-agent': 'Ambit',
        'webhook-id': eventId,
        'webhook-timestamp': String(timestamp),
        'webhook-signature': `v1,${signature}`,
      };
      const error = await this.#sender.send({ url, headers, body });
      return error === undefined ? { kind: 'taken' } : { kind: 'refused', error };
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      return { kind: 'refused', error: `${error.code}: ${reasonOf(error)}` };
    }
  }

  /** What there is to tell, read from its owner now; undefined where nobody has to do anything any more. */
  async #dataOf({ event, about }: ClaimedDelivery): Promise<Readonly<Record<string, unknown>> | undefined> {
    try {
      switch (event) {
        case 'interaction.requested': {
          const { url, result: _result, ...interaction } = await this.bus.call(sessionService.getInteraction, { id: about });
          return interaction.status === 'pending' ? { interaction, url } : undefined;
        }
        case 'call.parked': {
          const call = await this.bus.call(toolGateway.getCall, { operationId: about });
          return call.parked ? { call } : undefined;
        }
      }
    } catch (error) {
      if (error instanceof Fault && (error.code === 'NO_INTERACTION' || error.code === 'CALL_UNKNOWN')) return undefined;
      throw error;
    }
  }

  async #trim(): Promise<void> {
    await this.deliveries
      .trim(new Date(Date.now() - KEPT_MS))
      .catch((error: unknown) => this.log.warn({ error }, 'what webhooks were told long ago was not removed; it is tried again'));
  }
}

/** A fault's sentence; where its data has one, that says more. */
function reasonOf({ data, message }: Fault): string {
  const reason: unknown = typeof data === 'object' && data !== null ? Reflect.get(data, 'reason') : undefined;
  return typeof reason === 'string' ? reason : message;
}
