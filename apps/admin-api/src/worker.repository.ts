import { adminApi, eventMessage, WorkerCredential } from '@ambit/contracts';
import { addToOutbox, appendAudit, DB, type AdminDb, type AuditEntry, type Prisma } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';

type Row = Prisma.AdminWorkerCredentialGetPayload<object>;
const read = (row: Row): WorkerCredential =>
  WorkerCredential.parse({
    ...row,
    issuedAt: row.issuedAt.toISOString(),
    expiresAt: row.expiresAt.toISOString(),
    revokedAt: row.revokedAt?.toISOString() ?? null,
  });

/** Worker credentials, without their seeds. */
@Injectable()
export class WorkerRepository {
  constructor(@Inject(DB) private readonly db: AdminDb) {}

  async list(
    where: { readonly agentId?: string; readonly revokedAt?: null },
    page: { readonly after?: string | undefined; readonly limit: number },
  ): Promise<WorkerCredential[]> {
    const rows = await this.db.adminWorkerCredential.findMany({
      where,
      orderBy: { id: 'asc' },
      take: page.limit,
      ...(page.after === undefined ? {} : { cursor: { id: page.after }, skip: 1 }),
    });
    return rows.map(read);
  }

  async find(where: { readonly id: string } | { readonly publicKey: string }): Promise<WorkerCredential | undefined> {
    const row = await this.db.adminWorkerCredential.findUnique({ where });
    return row === null ? undefined : read(row);
  }

  async create(
    credential: Omit<WorkerCredential, 'issuedAt' | 'expiresAt' | 'revokedAt'>,
    times: { readonly issuedAt: Date; readonly expiresAt: Date },
    audit: AuditEntry,
  ): Promise<WorkerCredential> {
    return this.db.$transaction(async (transaction) => {
      const row = await transaction.adminWorkerCredential.create({ data: { ...credential, ...times } });
      await appendAudit(transaction, 'admin-api', audit);
      return read(row);
    });
  }

  /** Keys that were revoked while a JWT of theirs may still be good. */
  async revokedKeys(now: Date): Promise<string[]> {
    const rows = await this.db.adminWorkerCredential.findMany({
      where: { revokedAt: { not: null }, expiresAt: { gt: now } },
      select: { publicKey: true },
      take: 10_000,
    });
    return rows.map(({ publicKey }) => publicKey);
  }

  async renewed(id: string, expiresAt: Date): Promise<void> {
    await this.db.adminWorkerCredential.updateMany({ where: { id }, data: { expiresAt } });
  }

  async revoke(credential: WorkerCredential, audit: AuditEntry): Promise<void> {
    await this.db.$transaction(async (transaction) => {
      await transaction.adminWorkerCredential.updateMany({
        where: { id: credential.id, revokedAt: null },
        data: { revokedAt: new Date(audit.at) },
      });
      const payload = { agentId: credential.agentId, name: credential.name, at: audit.at };
      await addToOutbox(transaction, 'admin-api', [
        eventMessage(adminApi.workerRevoked, payload, {
          keys: { agentId: credential.agentId },
          id: `worker.${credential.id}.revoked`,
          time: new Date(audit.at),
        }),
      ]);
      await appendAudit(transaction, 'admin-api', audit);
    });
  }
}
