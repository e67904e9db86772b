import type { JsonObject, OfferHashes } from '@ambit/contracts';
import { DB, type BrokerDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';
import { tell, type Moved } from './server.repository.js';
import { knownOffers } from './server.view.js';

export type StoredKind = keyof OfferHashes;

/** One entry of a stored list, as its server defines it. */
export interface StoredOffer {
  readonly template: boolean;
  readonly definition: JsonObject;
}

/** A list read whole. */
export interface OfferList {
  readonly kind: StoredKind;
  readonly hash: string;
  readonly items: readonly unknown[];
  /** The generation of the server that it was read from. */
  readonly generation: number;
  readonly at: Date;
}

/** Where prompts, resources and skills of servers stand. Each change moves the owner's epoch and tells of itself by the outbox. */
@Injectable()
export class OfferRepository {
  constructor(@Inject(DB) private readonly db: BrokerDb) {}

  /** Undefined where it is the list that stands already, or the server has become another. */
  save(serverId: string, list: OfferList): Promise<Moved | undefined> {
    const { kind, hash, items, generation, at } = list;
    return this.db.$transaction(async (transaction) => {
      // Two lists of one server may be read at once, and both stand in one field.
      await transaction.$queryRawUnsafe('SELECT 1 FROM "mcp_broker"."server" WHERE "id" = $1::uuid FOR UPDATE', serverId);
      const row = await transaction.brokerServer.findUnique({ where: { id: serverId } });
      if (row === null || row.configGeneration !== generation) return undefined;
      const known = knownOffers(row);
      if (known[kind]?.hash === hash && known[kind].of === generation) return undefined;
      const data = { hash, items: JSON.stringify(items), readAt: at };
      await transaction.brokerOffers.upsert({
        where: { serverId_kind: { serverId, kind } },
        create: { serverId, kind, ...data },
        update: data,
      });
      const offers = JSON.stringify({ ...known, [kind]: { hash, of: generation } });
      const changed = await transaction.brokerServer.update({ where: { id: serverId }, data: { offers } });
      // An empty list where there was none tells nobody anything.
      if (known[kind]?.of !== generation && items.length === 0) return undefined;
      return tell(transaction, { rows: [changed], at, owner: row.owner });
    });
  }

  /** Takes a list away with the connection it came over. Undefined where there was none. */
  clear(serverId: string, kind: StoredKind, at: Date): Promise<Moved | undefined> {
    return this.db.$transaction(async (transaction) => {
      await transaction.$queryRawUnsafe('SELECT 1 FROM "mcp_broker"."server" WHERE "id" = $1::uuid FOR UPDATE', serverId);
      const row = await transaction.brokerServer.findUnique({ where: { id: serverId } });
      if (row === null) return undefined;
      const { [kind]: gone, ...offers } = knownOffers(row);
      if (gone === undefined) return undefined;
      await transaction.brokerOffers.deleteMany({ where: { serverId, kind } });
      const changed = await transaction.brokerServer.update({ where: { id: serverId }, data: { offers: JSON.stringify(offers) } });
      return tell(transaction, { rows: [changed], at, owner: row.owner });
    });
  }

  async clearAll(kind: StoredKind, at: Date): Promise<Moved[]> {
    const rows = await this.db.brokerOffers.findMany({ where: { kind }, select: { serverId: true } });
    const moved = await Promise.all(rows.map(({ serverId }) => this.clear(serverId, kind, at)));
    return moved.filter((one) => one !== undefined);
  }

  /** The JSON of a stored list; null where its hash is another by now. */
  async read(serverId: string, kind: StoredKind, hash: string): Promise<string | null> {
    const row = await this.db.brokerOffers.findUnique({ where: { serverId_kind: { serverId, kind } } });
    return row?.hash === hash ? row.items : null;
  }
}
