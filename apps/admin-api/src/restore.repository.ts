import { AuditRecord } from '@ambit/contracts';
import { DB, type AdminDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';

const AT_ONCE = 100;

/** Acts that a restored database does not know of, until they were gone through. */
@Injectable()
export class RestoreRepository {
  constructor(@Inject(DB) private readonly db: AdminDb) {}

  async some(): Promise<AuditRecord[]> {
    const rows = await this.db.adminLostRecord.findMany({ orderBy: [{ owner: 'asc' }, { sequence: 'asc' }], take: AT_ONCE });
    return rows.map(({ record }) => AuditRecord.parse(record));
  }

  async done({ owner, sequence }: Pick<AuditRecord, 'owner' | 'sequence'>): Promise<void> {
    await this.db.adminLostRecord.deleteMany({ where: { owner, sequence: BigInt(sequence) } });
  }
}
