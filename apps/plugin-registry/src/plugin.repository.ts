import { eventMessage, FileEntry, pluginRegistry, type FileEntry as File } from '@ambit/contracts';
import { addToOutbox, appendAudit, DB, type AuditEntry, type Prisma, type PluginDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';
import { z } from 'zod';
import { Manifest } from './domain/manifest.js';

const OWNER = 'plugin-registry';
const Contributes = z.object({ servers: z.array(z.string()), skills: z.array(z.string()) });
const Tree = z.array(FileEntry);

export type Installation = Omit<Prisma.PluginInstallationGetPayload<object>, 'contributes' | 'epoch' | 'fence' | 'revokedFence'> & {
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
  readonly contributes?: z.output<typeof Contributes>;
  readonly takes?: boolean;
}

const read = (row: Prisma.PluginInstallationGetPayload<object>): Installation => ({
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
  constructor(@Inject(DB) private readonly db: PluginDb) {}

  async savePackage({ digest, tree, manifest }: Package): Promise<void> {
    const create = { digest, tree: tree.map((file) => ({ ...file })), manifest: { ...manifest } };
    await this.db.pluginPackage.upsert({ where: { digest }, create, update: {} });
  }

  async package(digest: string): Promise<Package | undefined> {
    const row = await this.db.pluginPackage.findUnique({ where: { digest } });
    return row === null ? undefined : { digest, tree: Tree.parse(row.tree), manifest: Manifest.parse(row.manifest) };
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

  /** A revocation that not everybody has acknowledged yet. */
  async owed(): Promise<Installation[]> {
    const rows = await this.db.pluginInstallation.findMany({ where: { state: { not: 'enabled' } }, take: 1_000 });
    return rows.map(read).filter((row) => row.revokedFence < row.fence);
  }

  async create(
    change: PluginChange,
    row: { readonly id: string; readonly projectId: string; readonly digest: string; readonly set: string | null },
  ): Promise<Installation> {
    const epoch = BigInt(change.at.getTime());
    return this.tell(change, (transaction) =>
      transaction.pluginInstallation.create({
        data: {
          ...row,
          state: 'disabled',
          wanted: 'disabled',
          contributes: { servers: [], skills: [] },
          epoch,
          fence: epoch,
          revokedFence: epoch,
          installedAt: change.at,
          updatedAt: change.at,
        },
      }),
    );
  }

  async update(change: PluginChange, id: string, update: Update): Promise<Installation> {
    const { takes, ...data } = update;
    return this.tell(change, async (transaction) => {
      await transaction.$queryRawUnsafe(`SELECT 1 FROM "plugin_registry"."installation" WHERE "id" = $1 FOR UPDATE`, id);
      const current = read(await transaction.pluginInstallation.findUniqueOrThrow({ where: { id } }));
      const epoch = BigInt(later(current.epoch, change.at));
      const fence = takes === true ? BigInt(later(current.fence, change.at)) : BigInt(current.fence);
      return transaction.pluginInstallation.update({
        where: { id },
        data: { ...data, epoch, fence, revision: { increment: 1 }, updatedAt: change.at },
      });
    });
  }

  async acknowledgeRevocation(id: string, fence: number): Promise<void> {
    await this.db.pluginInstallation.updateMany({
      where: { id, revokedFence: { lt: BigInt(fence) } },
      data: { revokedFence: BigInt(fence) },
    });
  }

  async remove(change: PluginChange, installation: Installation): Promise<void> {
    await this.tell(change, async (transaction) => {
      await transaction.pluginInstallation.delete({ where: { id: installation.id } });
      return {
        ...installation,
        contributes: {},
        epoch: BigInt(installation.epoch),
        fence: BigInt(installation.fence),
        revokedFence: BigInt(installation.revokedFence),
      };
    });
  }

  /** Takes the plugin for one operation; false while another replica or request has it. */
  async take(id: string, operation: string, until: { readonly now: Date; readonly end: Date }): Promise<boolean> {
    const { count } = await this.db.pluginInstallation.updateMany({
      where: { id, OR: [{ operationUntil: null }, { operationUntil: { lt: until.now } }] },
      data: { operation, operationUntil: until.end },
    });
    return count === 1;
  }

  async release(id: string, operation: string): Promise<void> {
    await this.db.pluginInstallation.updateMany({ where: { id, operation }, data: { operation: null, operationUntil: null } });
  }

  private async tell(
    change: PluginChange,
    write: (transaction: Prisma.TransactionClient) => Promise<Prisma.PluginInstallationGetPayload<object>>,
  ): Promise<Installation> {
    return this.db.$transaction(async (transaction) => {
      const row = await write(transaction);
      const state = change.action === 'uninstalled' ? 'uninstalled' : row.state;
      const at = change.at.toISOString();
      const payload = pluginRegistry.pluginChanged.payload.parse({
        pluginId: row.id,
        projectId: row.projectId,
        state,
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
      return Object.keys(Object(row.contributes)).length === 0
        ? { ...read({ ...row, contributes: { servers: [], skills: [] } }) }
        : read(row);
    });
  }
}
