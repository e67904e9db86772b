import { Publisher } from '@ambit/contracts';
import { appendAudit, DB, type AuditEntry, type PluginDb, type Prisma } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';

const OWNER = 'plugin-registry';

/** The trust store: keys of publishers whose packages count as signed. */
@Injectable()
export class PublisherRepository {
  constructor(@Inject(DB) private readonly db: PluginDb) {}

  async find(keyId: string): Promise<Publisher | undefined> {
    const row = await this.db.pluginPublisher.findUnique({ where: { keyId } });
    return row === null ? undefined : read(row);
  }

  async list(page: { readonly after?: string; readonly limit: number }): Promise<Publisher[]> {
    const rows = await this.db.pluginPublisher.findMany({
      orderBy: { keyId: 'asc' },
      take: page.limit,
      ...(page.after === undefined ? {} : { cursor: { keyId: page.after }, skip: 1 }),
    });
    return rows.map(read);
  }

  /** Trusts a key and gives it as it stands then: a key that is trusted already stays its publisher’s. */
  async add(key: Omit<Publisher, 'addedAt'>, audit: AuditEntry): Promise<Publisher> {
    return this.db.$transaction(async (transaction) => {
      const { count } = await transaction.pluginPublisher.createMany({ data: [{ ...key, addedAt: audit.at }], skipDuplicates: true });
      if (count > 0) await appendAudit(transaction, OWNER, audit);
      return read(await transaction.pluginPublisher.findUniqueOrThrow({ where: { keyId: key.keyId } }));
    });
  }

  /** False where the key was not trusted. */
  async remove(keyId: string, audit: AuditEntry): Promise<boolean> {
    return this.db.$transaction(async (transaction) => {
      const { count } = await transaction.pluginPublisher.deleteMany({ where: { keyId } });
      if (count > 0) await appendAudit(transaction, OWNER, audit);
      return count > 0;
    });
  }
}

const read = (row: Prisma.PluginPublisherGetPayload<object>): Publisher => Publisher.parse({ ...row, addedAt: row.addedAt.toISOString() });
