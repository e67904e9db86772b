import { BoundedMap } from '@ambit/capability';
import { eventMessage, FileEntry, pluginRegistry, type FileEntry as File } from '@ambit/contracts';
import { addToOutbox, appendAudit, DB, type AuditEntry, type Prisma, type PluginDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';
import { z } from 'zod';
import { Manifest } from './domain/manifest.js';

const OWNER = 'plugin-registry';
const Contributes = z.object({ servers: z.array(z.string()), skills: z.array(z.string()) });
const Tree = z.array(FileEntry);
const PACKAGES = 64;

export const NOTHING: z.output<typeof Contributes> = { servers: [], skills: [] };

type Row = Prisma.PluginInstallationGetPayload<object>;
export type Installation = Omit<Row, 'contributes' | 'epoch' | 'fence' | 'revokedFence'> & {
  readonly contributes: z.output<typeof Contributes>;
  readonly epoch: number;
  readonly fence: number;
  readonly revokedFence: number;
};
export interface Package {
  readonly digest: string;
  readonly tree: readonly File[];
  readonly manifest: Manifest;
}
export interface PluginChange {
  readonly at: Date;
  readonly action: 'installed' | 'updated' | 'enabled' | 'disabled' | 'unavailable' | 'uninstalled';
  readonly audit: Omit<AuditEntry, 'at' | 'action' | 'target'>;
}
/** What changes of an installation; `takes` says that something was taken away, which moves the fence. */
export interface Update {
  readonly state?: string;
  readonly wanted?: string;
  readonly reason?: string | null;
  readonly digest?: string;
  readonly set?: string | null;
  readonly signedBy?: string | null;
  readonly signingKey?: string | null;
  readonly contributes?: z.output<typeof Contributes>;
  readonly takes?: boolean;
  /** Everything of it is where it belongs: no revocation is owed any more. */
  readonly settles?: boolean;
  readonly unfinished?: number;
  readonly quarantined?: string | null;
}
/** What an operation may write to; it loses the right with the plugin. */
interface Writable {
  readonly installation: { readonly id: string };
  readonly operation: string;
}

const read = (row: Row): Installation => ({
  ...row,
  contributes: Contributes.parse(row.contributes),
  epoch: Number(row.epoch),
  fence: Number(row.fence),
  revokedFence: Number(row.revokedFence),
});
const later = (last: number, at: Date) => Math.max(last + 1, at.getTime());

/** Packages and what is installed of them. */
@Injectable()
export class PluginRepository {
  /** What was read last: a package never changes. */
  private readonly packages = new BoundedMap<string, Package>(PACKAGES);

  constructor(@Inject(DB) private readonly db: PluginDb) {}

  async savePackage({ digest, tree, manifest }: Package): Promise<void> {
    const create = { digest, tree: tree.map((file) => ({ ...file })), manifest: { ...manifest } };
    await this.db.pluginPackage.upsert({ where: { digest }, create, update: {} });
  }

  async package(digest: string): Promise<Package | undefined> {
    const known = this.packages.get(digest);
    if (known !== undefined) return known;
    const row = await this.db.pluginPackage.findUnique({ where: { digest } });
    if (row === null) return undefined;
    const found = { digest, tree: Tree.parse(row.tree), manifest: Manifest.parse(row.manifest) };
    this.packages.set(digest, found);
    return found;
  }

  async find(id: string): Promise<Installation | undefined> {
    const row = await this.db.pluginInstallation.findUnique({ where: { id } });
    return row === null ? undefined : read(row);
  }

  async list(
    where: Prisma.PluginInstallationWhereInput,
    page: { readonly after?: string; readonly limit: number },
  ): Promise<Installation[]> {
    const rows = await this.db.pluginInstallation.findMany({
      where,
      orderBy: { id: 'asc' },
      take: page.limit,
      ...(page.after === undefined ? {} : { cursor: { id: page.after }, skip: 1 }),
    });
    return rows.map(read);
  }

  /** Plugins that an operation left in the middle of something: a revocation is owed, or an activation has no end. */
  async unsettled(): Promise<Installation[]> {
    const rows = await this.db.pluginInstallation.findMany({ where: { state: { not: 'enabled' } }, take: 1_000 });
    return rows
      .map(read)
      .filter(
        ({ revokedFence, fence, unfinished, wanted, quarantined, digest }) =>
          revokedFence < fence || (unfinished > 0 && wanted === 'enabled' && quarantined !== digest),
      );
  }

  /** Undefined where a plugin of this id is installed already. */
  async create(
    change: PluginChange,
    row: {
      readonly id: string;
      readonly projectId: string;
      readonly digest: string;
      readonly set: string | null;
      readonly state: string;
      readonly reason: string | null;
      readonly signedBy: string | null;
      readonly signingKey: string | null;
    },
  ): Promise<Installation | undefined> {
    const epoch = BigInt(change.at.getTime());
    const moved = { epoch, fence: epoch, revokedFence: epoch, installedAt: change.at, updatedAt: change.at };
    const data = { ...row, ...moved, wanted: 'disabled', contributes: { ...NOTHING } };
    return this.db.$transaction(async (transaction) => {
      const { count } = await transaction.pluginInstallation.createMany({ data: [data], skipDuplicates: true });
      if (count === 0) return undefined;
      return this.tell(transaction, change, await transaction.pluginInstallation.findUniqueOrThrow({ where: { id: row.id } }));
    });
  }

  async update(change: PluginChange, held: Writable, update: Update): Promise<Installation> {
    const { takes, settles, ...data } = update;
    return this.db.$transaction(async (transaction) => {
      const current = await lock(transaction, held);
      const epoch = BigInt(later(current.epoch, change.at));
      const fence = takes === true ? BigInt(later(current.fence, change.at)) : BigInt(current.fence);
      const row = await transaction.pluginInstallation.update({
        where: { id: current.id },
        data: {
          ...data,
          epoch,
          fence,
          ...(settles === true ? { revokedFence: fence } : {}),
          revision: { increment: 1 },
          updatedAt: change.at,
        },
      });
      return this.tell(transaction, change, row);
    });
  }

  /** An activation begins: until it has ended well, what it hands out has to be taken away again. */
  async begin(held: Writable, tries: number, at: Date): Promise<Installation> {
    return this.db.$transaction(async (transaction) => {
      const current = await lock(transaction, held);
      const data = { epoch: BigInt(later(current.epoch, at)), fence: BigInt(later(current.fence, at)), unfinished: tries };
      return read(await transaction.pluginInstallation.update({ where: { id: current.id }, data }));
    });
  }

  async acknowledgeRevocation(id: string, fence: number): Promise<void> {
    await this.db.pluginInstallation.updateMany({
      where: { id, revokedFence: { lt: BigInt(fence) } },
      data: { revokedFence: BigInt(fence) },
    });
  }

  async remove(change: PluginChange, held: Writable): Promise<void> {
    await this.db.$transaction(async (transaction) => {
      const { id } = await lock(transaction, held);
      await this.tell(transaction, change, await transaction.pluginInstallation.delete({ where: { id } }));
    });
  }

  private async tell(transaction: Prisma.TransactionClient, change: PluginChange, row: Row): Promise<Installation> {
    const at = change.at.toISOString();
    const payload = pluginRegistry.pluginChanged.payload.parse({
      pluginId: row.id,
      projectId: row.projectId,
      state: change.action === 'uninstalled' ? 'uninstalled' : row.state,
      epoch: Number(row.epoch),
      fence: Number(row.fence),
      at,
    });
    await addToOutbox(transaction, OWNER, [
      eventMessage(pluginRegistry.pluginChanged, payload, {
        keys: { pluginId: row.id },
        id: `plugin.${row.id}.${row.epoch}.${change.action}`,
        time: change.at,
      }),
    ]);
    await appendAudit(transaction, OWNER, { ...change.audit, at, action: `plugin.${change.action}`, target: row.id });
    return read(row);
  }
}

async function lock(transaction: Prisma.TransactionClient, { installation: { id }, operation }: Writable): Promise<Installation> {
  await transaction.$queryRawUnsafe(`SELECT 1 FROM "plugin_registry"."installation" WHERE "id" = $1 FOR UPDATE`, id);
  const current = await transaction.pluginInstallation.findUniqueOrThrow({ where: { id } });
  if (current.operation !== operation) throw new Error(`another operation has taken ${id} over`);
  return read(current);
}
