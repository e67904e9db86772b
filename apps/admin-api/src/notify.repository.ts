import { NotifiedEvent, NotifyDelivery, NotifySink, type DeliveryStatus } from '@ambit/contracts';
import { appendAudit, DB, type AdminDb, type AuditEntry, type Prisma } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';
import type { DeliveryVerdict } from './domain/delivery.js';
import { eventIdOf, type Happening } from './domain/notify.js';

const OWNER = 'admin-api';
type SinkRow = Prisma.AdminNotifySinkGetPayload<object>;
type DeliveryRow = Prisma.AdminNotifyDeliveryGetPayload<object>;

/** A delivery that this process has under a lease, with what it needs of its webhook. */
export interface ClaimedDelivery {
  readonly id: bigint;
  readonly sinkId: string;
  readonly claim: string;
  readonly event: NotifiedEvent;
  readonly eventId: string;
  readonly about: string;
  readonly occurredAt: Date;
  readonly attempts: number;
  /** Since it was stored, by the database's clock. */
  readonly ageMs: number;
  readonly projectId: string;
  readonly url: string;
  readonly secret: string;
}

function sinkOf({ id, projectId, url, events, secret, set, version, createdAt, updatedAt }: SinkRow): NotifySink {
  return NotifySink.parse({
    id,
    projectId,
    events,
    webhook: { url, sign: { secret } },
    set,
    version,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  });
}

function deliveryOf({ id, eventId, event, about, status, attempts, lastError, createdAt, dueAt, endedAt }: DeliveryRow): NotifyDelivery {
  return NotifyDelivery.parse({
    id: Number(id),
    eventId,
    event,
    about,
    status,
    attempts,
    lastError,
    createdAt: createdAt.toISOString(),
    nextAt: endedAt === null ? dueAt.toISOString() : null,
    endedAt: endedAt?.toISOString() ?? null,
  });
}

/** Webhooks, and what each was told or is to be told. */
@Injectable()
export class NotifyRepository {
  constructor(@Inject(DB) private readonly db: AdminDb) {}

  async list(
    where: { readonly projectId?: string | undefined; readonly set?: string | undefined; readonly secret?: string },
    page: { readonly after?: string | undefined; readonly limit: number },
  ): Promise<NotifySink[]> {
    const { projectId, set, secret } = where;
    const rows = await this.db.adminNotifySink.findMany({
      where: {
        ...(projectId === undefined ? {} : { projectId }),
        ...(set === undefined ? {} : { set }),
        ...(secret === undefined ? {} : { secret }),
        ...(page.after === undefined ? {} : { id: { gt: page.after } }),
      },
      orderBy: { id: 'asc' },
      take: page.limit,
    });
    return rows.map(sinkOf);
  }

  /** What webhooks want to be told of, each event of each project once. */
  async wanted(): Promise<{ readonly projectId: string; readonly event: NotifiedEvent }[]> {
    const rows = await this.db.$queryRaw<{ readonly projectId: string; readonly event: string }[]>`
      SELECT DISTINCT "project_id" AS "projectId", unnest("events") AS "event" FROM "admin_api"."notify_sink"`;
    return rows.map(({ projectId, event }) => ({ projectId, event: NotifiedEvent.parse(event) }));
  }

  async find(id: string): Promise<NotifySink | undefined> {
    const row = await this.db.adminNotifySink.findUnique({ where: { id } });
    return row === null ? undefined : sinkOf(row);
  }

  /** Makes or changes the webhook of a project at a URL; what it was to be told stays. */
  async put(
    sink: Pick<SinkRow, 'id' | 'projectId' | 'url' | 'events' | 'secret' | 'set'>,
    audit: (id: string) => AuditEntry,
  ): Promise<NotifySink> {
    const { id, projectId, url, ...content } = sink;
    return this.db.$transaction(async (transaction) => {
      const now = new Date(audit(id).at);
      const row = await transaction.adminNotifySink.upsert({
        where: { projectId_url: { projectId, url } },
        create: { ...sink, version: 1, createdAt: now, updatedAt: now },
        update: { ...content, version: { increment: 1 }, updatedAt: now },
      });
      await appendAudit(transaction, OWNER, audit(row.id));
      return sinkOf(row);
    });
  }

  /** Removes a webhook with everything that it was told or was to be told. */
  remove(id: string, audit: AuditEntry): Promise<boolean> {
    return this.db.$transaction(async (transaction) => {
      const { count } = await transaction.adminNotifySink.deleteMany({ where: { id } });
      if (count > 0) await appendAudit(transaction, OWNER, audit);
      return count > 0;
    });
  }

  /**
   * Stores what happened once for each webhook of its project that wants it; gives how many are new. What was `found` and
   * not heard may be old: of that a webhook gets what happened since it was made.
   */
  async add(happenings: readonly Happening[], how: { readonly found: boolean }): Promise<number> {
    const rows = JSON.stringify(happenings.map((one) => ({ ...one, eventId: eventIdOf(one) })));
    return this.db.$executeRaw`
      INSERT INTO "admin_api"."notify_delivery"
        ("sink_id", "event_id", "event", "about", "occurred_at", "status", "attempts", "due_at", "created_at")
      SELECT s."id", h->>'eventId', h->>'event', h->>'about', (h->>'at')::timestamptz, 'pending', 0, now(), now()
      FROM jsonb_array_elements(${rows}::jsonb) AS h JOIN "admin_api"."notify_sink" s
        ON s."project_id" = h->>'projectId' AND h->>'event' = ANY(s."events") AND (NOT ${how.found}::boolean OR s."created_at" <= (h->>'at')::timestamptz)
      ON CONFLICT ("sink_id", "event_id") DO NOTHING`;
  }

  /** Takes what is due, a few of each webhook, and none of those that are `busy`. Whatever is not settled within the lease is due again. */
  async claim(options: {
    readonly claim: string;
    readonly leaseMs: number;
    readonly busy: readonly string[];
    readonly perSink: number;
    readonly limit: number;
  }): Promise<ClaimedDelivery[]> {
    const { claim, leaseMs, busy, perSink, limit } = options;
    const rows = await this.db.$queryRaw<(Omit<ClaimedDelivery, 'event'> & { readonly event: string })[]>`
      WITH "due" AS (
        SELECT o."id" FROM "admin_api"."notify_sink" s CROSS JOIN LATERAL (
          SELECT d."id" FROM "admin_api"."notify_delivery" d
          WHERE d."sink_id" = s."id" AND d."status" = 'pending' AND d."due_at" <= now()
          ORDER BY d."due_at" LIMIT ${perSink}::int FOR UPDATE SKIP LOCKED) o
        WHERE NOT (s."id" = ANY(${[...busy]}::uuid[])) LIMIT ${limit}::int)
      UPDATE "admin_api"."notify_delivery" t
      SET "claim" = ${claim}::uuid, "attempts" = t."attempts" + 1, "due_at" = now() + make_interval(secs => ${leaseMs / 1_000}::float8)
      FROM "due", "admin_api"."notify_sink" s WHERE t."id" = "due"."id" AND s."id" = t."sink_id"
      RETURNING t."id", t."sink_id"::text AS "sinkId", t."claim"::text AS "claim", t."event", t."event_id" AS "eventId", t."about",
        t."occurred_at" AS "occurredAt", t."attempts", (extract(epoch FROM now() - t."created_at") * 1000)::float8 AS "ageMs",
        s."project_id" AS "projectId", s."url", s."secret"`;
    return rows.map((row) => ({ ...row, event: NotifiedEvent.parse(row.event) }));
  }

  /** Writes down how an attempt ended; says no where the lease had lapsed and somebody else has it. */
  async settle({ id, claim }: Pick<ClaimedDelivery, 'id' | 'claim'>, verdict: DeliveryVerdict): Promise<boolean> {
    const delayMs = verdict.status === 'pending' ? verdict.delayMs : null;
    const count = await this.db.$executeRaw`
      UPDATE "admin_api"."notify_delivery" SET "status" = ${verdict.status}::text, "last_error" = coalesce(${verdict.error}::text, "last_error"), "claim" = NULL,
        "due_at" = now() + make_interval(secs => ${(delayMs ?? 0) / 1_000}::float8), "ended_at" = CASE WHEN ${delayMs === null}::boolean THEN now() END
      WHERE "id" = ${id} AND "claim" = ${claim}::uuid AND "status" = 'pending'`;
    return count === 1;
  }

  async deliveries(
    sinkId: string,
    page: { readonly before?: bigint | undefined; readonly status?: DeliveryStatus | undefined; readonly limit: number },
  ): Promise<NotifyDelivery[]> {
    const { before, status, limit } = page;
    const rows = await this.db.adminNotifyDelivery.findMany({
      where: { sinkId, ...(before === undefined ? {} : { id: { lt: before } }), ...(status === undefined ? {} : { status }) },
      orderBy: { id: 'desc' },
      take: limit,
    });
    return rows.map(deliveryOf);
  }

  /** Forgets what ended before a moment. */
  async trim(before: Date): Promise<void> {
    await this.db.adminNotifyDelivery.deleteMany({ where: { endedAt: { lt: before } } });
  }
}
