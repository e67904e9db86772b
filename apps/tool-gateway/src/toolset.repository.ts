import { eventMessage, ToolRegistration, toolGateway } from '@ambit/contracts';
import { addToOutbox, DB, type GatewayDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';
import { z } from 'zod';

export interface StoredToolset {
  readonly agentId: string;
  readonly digest: string;
  readonly pool: string;
  readonly tools: readonly ToolRegistration[];
}

/** Toolsets as they came, and the epochs of owners' tools. */
@Injectable()
export class ToolsetRepository {
  constructor(@Inject(DB) private readonly db: GatewayDb) {}

  async put(toolset: StoredToolset, seenAt: Date): Promise<void> {
    const { agentId, digest, pool } = toolset;
    const tools: object[] = JSON.parse(JSON.stringify(toolset.tools));
    await this.db.gatewayToolset.upsert({
      where: { agentId_digest: { agentId, digest } },
      create: { agentId, digest, pool, tools, seenAt },
      update: { pool, seenAt },
    });
  }

  async find(agentId: string, digest: string): Promise<StoredToolset | undefined> {
    const row = await this.db.gatewayToolset.findUnique({ where: { agentId_digest: { agentId, digest } } });
    return row === null ? undefined : { agentId, digest, pool: row.pool, tools: z.array(ToolRegistration).parse(row.tools) };
  }

  /**
   * Moves an owner's epoch where `digest` is another than the one it stands for, and tells of the toolsets that came and went; of several
   * replicas that saw the same change one does. Gives the epoch that stands, and whether it moved.
   */
  move(
    owner: string,
    digest: string,
    change: {
      readonly now: Date;
      readonly changed?: readonly { readonly agentId: string; readonly digest: string; readonly live: boolean }[];
    },
  ): Promise<{ epoch: number; moved: boolean }> {
    const { now, changed = [] } = change;
    return this.db.$transaction(async (transaction) => {
      const rows = await transaction.$queryRaw<{ epoch: bigint }[]>`
        INSERT INTO "tool_gateway"."epoch" AS e ("owner", "digest", "epoch") VALUES (${owner}, ${digest}, ${BigInt(now.getTime())})
        ON CONFLICT ("owner") DO UPDATE SET "digest" = EXCLUDED."digest", "epoch" = greatest(e."epoch" + 1, EXCLUDED."epoch") WHERE e."digest" <> EXCLUDED."digest" RETURNING "epoch"`;
      const moved = rows[0];
      if (moved === undefined)
        return { epoch: Number((await transaction.gatewayEpoch.findUniqueOrThrow({ where: { owner } })).epoch), moved: false };
      const at = now.toISOString();
      await addToOutbox(
        transaction,
        'tool-gateway',
        changed.map((toolset) =>
          eventMessage(
            toolGateway.toolsChanged,
            { ...toolset, at },
            { keys: { agentId: toolset.agentId }, id: `${owner}.${moved.epoch}.${toolset.digest}`, time: now },
          ),
        ),
      );
      return { epoch: Number(moved.epoch), moved: true };
    });
  }
}
