import { RoleGrant, Token } from '@ambit/contracts';
import { appendAudit, DB, type AdminDb, type AuditEntry, type Prisma } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';
import { z } from 'zod';

const Names = z.array(z.string());
type TokenRow = Prisma.AdminTokenGetPayload<object>;
type GrantRow = Prisma.AdminRoleGrantGetPayload<object>;

const iso = (at: Date | null) => at?.toISOString() ?? null;
const readToken = (row: TokenRow): Token => ({
  id: row.id,
  name: row.name,
  principal: row.principal,
  groups: Names.parse(row.groups),
  expiresAt: iso(row.expiresAt),
  revokedAt: iso(row.revokedAt),
  lastUsedAt: iso(row.lastUsedAt),
  createdAt: row.createdAt.toISOString(),
});
const readGrant = (row: GrantRow): RoleGrant => RoleGrant.parse({ ...row, createdAt: row.createdAt.toISOString() });

function dataOf({ agents, ...grant }: RoleGrant): Prisma.AdminRoleGrantUncheckedCreateInput {
  return { ...grant, createdAt: new Date(grant.createdAt), ...(agents === null ? {} : { agents }) };
}

export interface FirstAdministrator {
  readonly token: Prisma.AdminTokenUncheckedCreateInput;
  readonly grant: RoleGrant;
  /** Only where there is no token at all. */
  readonly onlyIfNone: boolean;
  readonly audit: (action: string) => AuditEntry;
}

/** Tokens and role grants; each write with its audit record. */
@Injectable()
export class AccessRepository {
  constructor(@Inject(DB) private readonly db: AdminDb) {}

  async tokenByHash(hash: string): Promise<Token | undefined> {
    const row = await this.db.adminToken.findUnique({ where: { hash } });
    return row === null ? undefined : readToken(row);
  }

  async touch(id: string, at: Date): Promise<void> {
    await this.db.adminToken.updateMany({ where: { id }, data: { lastUsedAt: at } });
  }

  /** Makes the first administrator's token and role, both or neither, however many replicas start at once. False where the token is there already. */
  async enrolFirst({ token, grant, onlyIfNone, audit }: FirstAdministrator): Promise<boolean> {
    return this.db.$transaction(async (transaction) => {
      await transaction.$executeRaw`SELECT pg_advisory_xact_lock(hashtextextended('admin-api.first-administrator', 0))`;
      const { adminToken, adminRoleGrant } = transaction;
      if (onlyIfNone && (await adminToken.count({ where: { revokedAt: null } })) > 0) return false;
      if ((await adminToken.count({ where: { hash: token.hash } })) > 0) return false;
      const isGranted = (await adminRoleGrant.count({ where: { who: grant.who, role: grant.role } })) > 0;
      await adminToken.create({ data: token });
      if (!isGranted) await adminRoleGrant.create({ data: dataOf(grant) });
      await appendAudit(transaction, 'admin-api', audit('token.created'));
      if (!isGranted) await appendAudit(transaction, 'admin-api', audit('access.granted'));
      return true;
    });
  }

  async listTokens(after: string | undefined, limit: number): Promise<Token[]> {
    const rows = await this.db.adminToken.findMany({
      orderBy: { id: 'asc' },
      take: limit,
      ...(after === undefined ? {} : { cursor: { id: after }, skip: 1 }),
    });
    return rows.map(readToken);
  }

  async createToken(row: Prisma.AdminTokenUncheckedCreateInput, audit: AuditEntry): Promise<Token> {
    return this.audited(audit, async (transaction) => readToken(await transaction.adminToken.create({ data: row })));
  }

  async revokeToken(id: string, audit: AuditEntry): Promise<boolean> {
    return this.audited(
      audit,
      async (transaction) =>
        (await transaction.adminToken.updateMany({ where: { id, revokedAt: null }, data: { revokedAt: new Date(audit.at) } })).count === 1,
    );
  }

  /** Ends every token of a principal and takes its roles; the names of its tokens go. */
  async removePrincipal(principal: string, audit: AuditEntry): Promise<{ readonly tokens: number; readonly grants: number }> {
    return this.audited(audit, async (transaction) => {
      const { count: tokens } = await transaction.adminToken.updateMany({
        where: { principal, revokedAt: null },
        data: { revokedAt: new Date(audit.at) },
      });
      await transaction.adminToken.updateMany({ where: { principal }, data: { name: 'erased' } });
      const { count: ofEdge } = await transaction.adminEdgeToken.updateMany({
        where: { principal, revokedAt: null },
        data: { revokedAt: new Date(audit.at) },
      });
      await transaction.adminEdgeToken.updateMany({ where: { principal }, data: { name: 'erased' } });
      const { count: grants } = await transaction.adminRoleGrant.deleteMany({ where: { who: principal } });
      return { tokens: tokens + ofEdge, grants };
    });
  }

  async grantsOf(who: readonly string[]): Promise<RoleGrant[]> {
    return (await this.db.adminRoleGrant.findMany({ where: { who: { in: [...who] } }, take: 1_000 })).map(readGrant);
  }

  async listGrants(
    where: { readonly set?: string },
    page: { readonly after?: string | undefined; readonly limit: number },
  ): Promise<RoleGrant[]> {
    const rows = await this.db.adminRoleGrant.findMany({
      where,
      orderBy: { id: 'asc' },
      take: page.limit,
      ...(page.after === undefined ? {} : { cursor: { id: page.after }, skip: 1 }),
    });
    return rows.map(readGrant);
  }

  async createGrant(grant: RoleGrant, audit: AuditEntry): Promise<RoleGrant> {
    return this.audited(audit, async (transaction) => readGrant(await transaction.adminRoleGrant.create({ data: dataOf(grant) })));
  }

  async deleteGrant(id: string, audit: AuditEntry): Promise<boolean> {
    return this.audited(audit, async (transaction) => (await transaction.adminRoleGrant.deleteMany({ where: { id } })).count === 1);
  }

  private audited<T>(audit: AuditEntry, write: (transaction: Prisma.TransactionClient) => Promise<T>): Promise<T> {
    return this.db.$transaction(async (transaction) => {
      const written = await write(transaction);
      if (written !== false) await appendAudit(transaction, 'admin-api', audit);
      return written;
    });
  }
}
