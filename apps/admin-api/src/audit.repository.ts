import { AuditRecord } from '@ambit/contracts';
import { DB, type AdminDb, type Prisma } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';

const AT_ONCE = 200;

interface Waiting {
  readonly record: AuditRecord;
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

/** The audit view: every owner's records in one place, to be searched. */
@Injectable()
export class AuditRepository {
  readonly #waiting: Waiting[] = [];
  #isWriting = false;

  constructor(@Inject(DB) private readonly db: AdminDb) {}

  /** The same record twice is one. Records that come while others are written are written together. */
  add(record: AuditRecord): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ record, resolve, reject });
      if (!this.#isWriting) void this.#writeAll();
    });
  }

  async #writeAll(): Promise<void> {
    this.#isWriting = true;
    while (this.#waiting.length > 0) {
      const together = this.#waiting.splice(0, AT_ONCE);
      try {
        await this.#write(together);
        for (const { resolve } of together) resolve();
      } catch {
        // Which of them it was shows when each is written by itself.
        for (const one of together) await this.#write([one]).then(one.resolve, one.reject);
      }
    }
    this.#isWriting = false;
  }

  async #write(waiting: readonly Waiting[]): Promise<void> {
    const data = waiting.map(({ record }) => ({
      owner: record.owner,
      sequence: BigInt(record.sequence),
      at: new Date(record.at),
      action: record.action,
      target: record.target,
      principal: record.principal?.id ?? null,
      actor: record.actor?.id ?? null,
      record,
    }));
    await this.db.adminAuditView.createMany({ data, skipDuplicates: true });
  }

  /** Up to where an owner's records are there without a gap, from a sequence on that was so before. */
  async unbrokenTo(owner: string, from: number): Promise<number> {
    const [row] = await this.db.$queryRaw<{ end: bigint | null }[]>`
      SELECT min(a."sequence") AS "end" FROM "admin_api"."audit_view" a WHERE a."owner" = ${owner} AND a."sequence" >= ${BigInt(from)}
        AND NOT EXISTS (SELECT 1 FROM "admin_api"."audit_view" b WHERE b."owner" = a."owner" AND b."sequence" = a."sequence" + 1)`;
    return Number(row?.end ?? 0);
  }

  /** Removes what is older than its retention, and never an owner's newest. */
  async trim(before: Date): Promise<void> {
    await this.db.$executeRaw`
      DELETE FROM "admin_api"."audit_view" v USING (
        SELECT "owner", coalesce(min("sequence") FILTER (WHERE "at" >= ${before}), max("sequence")) AS "first" FROM "admin_api"."audit_view" GROUP BY "owner") k
      WHERE v."owner" = k."owner" AND v."sequence" < k."first"`;
  }

  async list(where: Prisma.AdminAuditViewWhereInput, page: { readonly skip: number; readonly take: number }): Promise<AuditRecord[]> {
    const rows = await this.db.adminAuditView.findMany({ where, orderBy: [{ at: 'asc' }, { owner: 'asc' }, { sequence: 'asc' }], ...page });
    return rows.map((row) => AuditRecord.parse(row.record));
  }

  async owners(): Promise<string[]> {
    return (await this.db.adminAuditView.findMany({ distinct: ['owner'], select: { owner: true }, orderBy: { owner: 'asc' } })).map(
      ({ owner }) => owner,
    );
  }

  async chain(owner: string, after: number, take: number): Promise<AuditRecord[]> {
    const rows = await this.db.adminAuditView.findMany({
      where: { owner, sequence: { gt: BigInt(after) } },
      orderBy: { sequence: 'asc' },
      take,
    });
    return rows.map((row) => AuditRecord.parse(row.record));
  }
}
