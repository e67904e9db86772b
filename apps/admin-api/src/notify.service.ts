import { randomUUID } from 'node:crypto';
import { Egress } from '@ambit/egress';
import {
  fault,
  httpApi,
  platformFault,
  type Notify,
  type NotifyDelivery,
  type NotifySink,
  type Payload,
  type sessionService,
  type toolGateway,
} from '@ambit/contracts';
import { CONFIG } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import { auditOf } from './admin-audit.js';
import type { AdminApiConfig } from './config.js';
import { DeliveryService } from './delivery.service.js';
import { happeningOf, notifyState, type Happening } from './domain/notify.js';
import type { RequestContext } from './http/bound-route.js';
import { NotifyRepository } from './notify.repository.js';
import { paged, type Page } from './paging.js';

type Requested = Payload<typeof sessionService.interactionRequested>;
type Parked = Payload<typeof toolGateway.callParked>;
type Doing = Parameters<typeof auditOf>[0];

/** Webhooks of a project, and what happens that they are to be told. */
@Injectable()
export class NotifyService {
  readonly #egress: Egress;

  constructor(
    private readonly sinks: NotifyRepository,
    private readonly deliveries: DeliveryService,
    @Inject(CONFIG) config: AdminApiConfig,
  ) {
    this.#egress = new Egress(config.AMBIT_EGRESS_ALLOW);
  }

  list({ query }: RequestContext<typeof httpApi.listNotify>): Promise<Page<NotifySink>> {
    return paged(
      query.limit,
      ({ id }) => id,
      (limit) => this.sinks.list(query, { after: query.cursor, limit }),
    );
  }

  async told({ params, query, caller }: RequestContext<typeof httpApi.listDeliveries>): Promise<Page<NotifyDelivery>> {
    const sink = await this.sinks.find(params.id);
    if (sink === undefined) throw fault(httpApi.listDeliveries, 'NOTIFY_UNKNOWN');
    caller.require('administer', sink);
    const before = /^[1-9][0-9]{0,17}$/.test(query.cursor ?? '') ? BigInt(query.cursor ?? 0) : undefined;
    return paged(
      query.limit,
      ({ id }) => String(id),
      (limit) => this.sinks.deliveries(sink.id, { before, status: query.status, limit }),
    );
  }

  /** Refuses wanted webhooks that could not be told anything, before anything is changed; `secrets` are the names that there will be. */
  check(wanted: readonly Notify[], secrets: ReadonlySet<string>): void {
    const urls = new Set<string>();
    for (const [index, { webhook }] of wanted.entries()) {
      const place = `desired.notify.${index}.webhook`;
      const { url, sign } = webhook;
      if (urls.has(url)) {
        const message = 'This URL stands there twice; name all its events in one entry';
        throw platformFault('INVALID_INPUT', { issues: [{ path: `${place}.url`, message }] }, `${place}.url: ${message}`);
      }
      urls.add(url);
      const reason = this.#egress.problemOfUrl(url, 'who sent a request is in its signature');
      if (reason !== undefined) throw fault(httpApi.plan, 'URL_REFUSED', { reason }, `${place}.url: ${reason}`);
      if (!secrets.has(sign.secret))
        throw fault(
          httpApi.plan,
          'SECRET_UNKNOWN',
          { name: sign.secret },
          `${place}.sign: the project has no secret ${sign.secret}; declare it under secrets, or make it with \`ambit secret set\``,
        );
    }
  }

  async put(wanted: Notify, place: { readonly projectId: string; readonly set: string | null }, request: Doing): Promise<void> {
    const { events, secret } = notifyState(wanted);
    const { url } = wanted.webhook;
    await this.sinks.put({ id: randomUUID(), url, events, secret, ...place }, (id) =>
      auditOf(request, { action: 'notify.put', target: `notify:${id}`, projectId: place.projectId, reason: new URL(url).origin }),
    );
  }

  async remove(id: string, about: { readonly projectId: string; readonly url: string }, request: Doing): Promise<void> {
    const { projectId, url } = about;
    const reason = new URL(url).origin;
    await this.sinks.remove(id, auditOf(request, { action: 'notify.removed', target: `notify:${id}`, projectId, reason }));
  }

  /** Refuses to let go of a secret that a webhook is signed with. */
  async requireUnused(secret: { readonly projectId: string; readonly name: string }): Promise<void> {
    const users = await this.sinks.list({ projectId: secret.projectId, secret: secret.name }, { limit: 100 });
    if (users.length === 0) return;
    throw fault(httpApi.deleteSecret, 'SECRET_IN_USE', { servers: [], webhooks: users.map(({ webhook }) => webhook.url) });
  }

  requested({ interaction }: Requested): Promise<void> {
    return this.#heard(happeningOf.interaction(interaction));
  }

  /** Events from before there were webhooks have no project; what is parked still is found where it stands. */
  async parked({ operationId, projectId, at }: Parked): Promise<void> {
    if (projectId !== undefined) await this.#heard({ event: 'call.parked', about: operationId, projectId, at });
  }

  async #heard(happening: Happening): Promise<void> {
    if ((await this.sinks.add([happening], { found: false })) > 0) this.deliveries.wake();
  }
}
