import { AuditRecord } from '@ambit/contracts';
import { DB, type AdminDb, type Prisma } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';

/** The audit view: every owner's records in one place, to be searched. */
@Injectable()
export class AuditRepository {
  constructor(@Inject(DB) private readonly db: AdminDb) {}

  /** The same record twice is one. */
  async add(record: AuditRecord): Promise<void> {
    const { owner, action, target } = record;
    const sequence = BigInt(record.sequence);
    const row = {
      owner,
      sequence,
      at: new Date(record.at),
      action,
      target,
      principal: record.principal?.id ?? null,
      actor: record.actor?.id ?? null,
      record: record as unknown as Prisma.InputJsonValue,
    };
    await this.db.adminAuditView.upsert({ where: { owner_sequence: { owner, sequence } }, create: row, update: {} });
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
