import { AuditRecord } from '@ambit/contracts';
import { DB, type AdminDb, type Prisma } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';

/** The audit view: every owner's records in one place, to be searched. */
@Injectable()
export class AuditRepository {
  constructor(@Inject(DB) private readonly db: AdminDb) {}

  /** Records that came together are written together; the same record twice is one. */
  async add(records: readonly AuditRecord[]): Promise<void> {
    await this.db.$executeRaw`
      INSERT INTO "admin_api"."audit_view" ("owner", "sequence", "at", "action", "target", "principal", "actor", "record")
      SELECT r->>'owner', (r->>'sequence')::bigint, (r->>'at')::timestamptz, r->>'action', r->>'target', r->'principal'->>'id', r->'actor'->>'id', r
      FROM jsonb_array_elements(${JSON.stringify(records)}::jsonb) AS r ON CONFLICT DO NOTHING`;
  }

  /** Up to where an owner's records are there without a gap, from a sequence on that was so before. */
  async unbrokenTo(owner: string, from: number): Promise<number> {
    const [row] = await this.db.$queryRaw<{ end: bigint | null }[]>`
      SELECT min(a."sequence") AS "end" FROM "admin_api"."audit_view" a WHERE a."owner" = ${owner} AND a."sequence" >= ${BigInt(from)}
        AND NOT EXISTS (SELECT 1 FROM "admin_api"."audit_view" b WHERE b."owner" = a."owner" AND b."sequence" = a."sequence" + 1)`;
    return Number(row?.end ?? 0);
  }

  /** Removes what is older than its retention, and never an owner's newest. */
  async trim(owners: readonly string[], before: Date): Promise<void> {
    await this.db.$executeRaw`
      DELETE FROM "admin_api"."audit_view" v USING (
        SELECT o."owner", coalesce(
          (SELECT a."sequence" FROM "admin_api"."audit_view" a WHERE a."owner" = o."owner" AND a."at" >= ${before} ORDER BY a."sequence" LIMIT 1),
          (SELECT max(a."sequence") FROM "admin_api"."audit_view" a WHERE a."owner" = o."owner")) AS "first"
        FROM unnest(${[...owners]}::text[]) AS o("owner")) k
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
