import { DB, type PluginDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';

/** Who works on which plugin, over all replicas. Only the database's clock counts. */
@Injectable()
export class OperationRepository {
  constructor(@Inject(DB) private readonly db: PluginDb) {}

  /** Takes the plugin for one operation; false while another one has it. */
  async take(id: string, operation: string, forMs: number): Promise<boolean> {
    const taken = await this.db.$executeRawUnsafe(
      `UPDATE "plugin_registry"."installation" SET "operation" = $2, "operation_until" = now() + $3 * interval '1 millisecond'
       WHERE "id" = $1 AND ("operation_until" IS NULL OR "operation_until" < now())`,
      id,
      operation,
      forMs,
    );
    return taken === 1;
  }

  /** Keeps it for longer; false where it was lost. */
  async keep(id: string, operation: string, forMs: number): Promise<boolean> {
    const kept = await this.db.$executeRawUnsafe(
      `UPDATE "plugin_registry"."installation" SET "operation_until" = now() + $3 * interval '1 millisecond' WHERE "id" = $1 AND "operation" = $2`,
      id,
      operation,
      forMs,
    );
    return kept === 1;
  }

  async release(id: string, operation: string): Promise<void> {
    await this.db.pluginInstallation.updateMany({ where: { id, operation }, data: { operation: null, operationUntil: null } });
  }
}
