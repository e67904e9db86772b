import { EdgeToken } from '@ambit/contracts';
import { appendAudit, DB, type AdminDb, type AuditEntry, type Prisma } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';

type Row = Prisma.AdminEdgeTokenGetPayload<object>;

const iso = (at: Date | null) => at?.toISOString() ?? null;
const read = (row: Row): EdgeToken =>
  EdgeToken.parse({
    ...row,
    expiresAt: row.expiresAt.toISOString(),
    revokedAt: iso(row.revokedAt),
    lastUsedAt: iso(row.lastUsedAt),
    createdAt: row.createdAt.toISOString(),
  });

/** Tokens of MCP clients; each write with its audit record. */
@Injectable()
export class EdgeTokenRepository {
  constructor(@Inject(DB) private readonly db: AdminDb) {}

  async byHash(hash: string): Promise<EdgeToken | undefined> {
    const row = await this.db.adminEdgeToken.findUnique({ where: { hash } });
    return row === null ? undefined : read(row);
  }

  async find(id: string): Promise<EdgeToken | undefined> {
    const row = await this.db.adminEdgeToken.findUnique({ where: { id } });
    return row === null ? undefined : read(row);
  }

  async list(
    where: { readonly agentId?: string },
    page: { readonly after?: string | undefined; readonly limit: number },
  ): Promise<EdgeToken[]> {
    const rows = await this.db.adminEdgeToken.findMany({
      where,
      orderBy: { id: 'asc' },
      take: page.limit,
      ...(page.after === undefined ? {} : { cursor: { id: page.after }, skip: 1 }),
    });
    return rows.map(read);
  }

  async touch(id: string, at: Date): Promise<void> {
    await this.db.adminEdgeToken.updateMany({ where: { id }, data: { lastUsedAt: at } });
  }

  async create(row: Prisma.AdminEdgeTokenUncheckedCreateInput, audit: AuditEntry): Promise<EdgeToken> {
    return this.db.$transaction(async (transaction) => {
      const created = await transaction.adminEdgeToken.create({ data: row });
      await appendAudit(transaction, 'admin-api', audit);
      return read(created);
    });
  }

  async revoke(id: string, audit: AuditEntry): Promise<boolean> {
    return this.db.$transaction(async (transaction) => {
      const { count } = await transaction.adminEdgeToken.updateMany({
        where: { id, revokedAt: null },
        data: { revokedAt: new Date(audit.at) },
      });
      if (count === 1) await appendAudit(transaction, 'admin-api', audit);
      return count === 1;
    });
  }
}
