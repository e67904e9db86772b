import type { Secret } from '@ambit/contracts';
import { appendAudit, DB, type AuditEntry, type BrokerDb, type Prisma } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';
import { secretsOf } from './domain/put-server.js';
import { specOf } from './server.view.js';

const OWNER = 'mcp-broker';
export type SecretRow = Prisma.BrokerSecretGetPayload<object>;
type Stored = Pick<SecretRow, 'from' | 'key' | 'sealed' | 'keyId' | 'set'>;
interface Name {
  readonly projectId: string;
  readonly name: string;
}
/** A server that refers to a secret. */
export interface UserOfSecret {
  readonly id: string;
  readonly slug: string;
}

/** Where secrets stand. Values leave this file only sealed. */
@Injectable()
export class SecretRepository {
  constructor(@Inject(DB) private readonly db: BrokerDb) {}

  find(name: Name): Promise<SecretRow | null> {
    return this.db.brokerSecret.findUnique({ where: { projectId_name: { ...name } } });
  }

  put(name: Name, stored: Stored, audit: AuditEntry): Promise<SecretRow> {
    return this.db.$transaction(async (transaction) => {
      const data = { ...stored, updatedAt: new Date(audit.at) };
      const row = await transaction.brokerSecret.upsert({
        where: { projectId_name: { ...name } },
        create: { ...name, ...data, version: 1 },
        update: { ...data, version: { increment: 1 } },
      });
      await appendAudit(transaction, OWNER, audit);
      return row;
    });
  }

  list(
    where: { readonly projectId?: string | undefined; readonly set?: string | undefined },
    page: { readonly after?: Name | undefined; readonly limit: number },
  ): Promise<SecretRow[]> {
    const { projectId, set } = where;
    const { after } = page;
    return this.db.brokerSecret.findMany({
      where: {
        ...(projectId === undefined ? {} : { projectId }),
        ...(set === undefined ? {} : { set }),
        ...(after === undefined
          ? {}
          : { OR: [{ projectId: { gt: after.projectId } }, { projectId: after.projectId, name: { gt: after.name } }] }),
      },
      orderBy: [{ projectId: 'asc' }, { name: 'asc' }],
      take: page.limit,
    });
  }

  /** Removes a secret that nothing refers to; gives who does otherwise. */
  remove(name: Name, audit: AuditEntry): Promise<{ readonly deleted: boolean; readonly users: readonly UserOfSecret[] }> {
    return this.db.$transaction(async (transaction) => {
      const users = await usersIn(transaction, name);
      if (users.length > 0) return { deleted: false, users };
      const { count } = await transaction.brokerSecret.deleteMany({ where: { ...name } });
      if (count > 0) await appendAudit(transaction, OWNER, audit);
      return { deleted: count > 0, users };
    });
  }

  users(name: Name): Promise<readonly UserOfSecret[]> {
    return usersIn(this.db, name);
  }
}

async function usersIn(db: Pick<BrokerDb, 'brokerServer'>, { projectId, name }: Name): Promise<readonly UserOfSecret[]> {
  const rows = await db.brokerServer.findMany({ where: { projectId }, select: { id: true, slug: true, spec: true } });
  return rows.filter((row) => secretsOf(specOf(row).transport).includes(name)).map(({ id, slug }) => ({ id, slug }));
}

/** A secret as the contract shows it: everything but its value. */
export function secretOf(row: SecretRow): Secret {
  const from = row.from === 'env' || row.from === 'file' ? row.from : 'store';
  return {
    name: row.name,
    projectId: row.projectId,
    from,
    key: row.key,
    keyId: row.keyId,
    set: row.set,
    version: row.version,
    updatedAt: row.updatedAt.toISOString(),
  };
}
