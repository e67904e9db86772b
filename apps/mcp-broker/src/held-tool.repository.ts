import { appendAudit, DB, type BrokerDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';
import { tell, type Audit, type Moved } from './server.repository.js';
import { acceptedToolsOf, heldToolsOf, type ServerRow } from './server.view.js';
import { showTools } from './shown-tools.js';

const OWNER = 'mcp-broker';

/** Where it stands that a person has accepted what a tool is now. */
@Injectable()
export class HeldToolRepository {
  constructor(@Inject(DB) private readonly db: BrokerDb) {}

  /** Gives why not where it is not held, or is held with another definition by now. */
  accept(
    id: string,
    { tool, digest, at }: { readonly tool: string; readonly digest: string; readonly at: Date },
    audit: Audit,
  ): Promise<{ readonly row: ServerRow; readonly moved: Moved } | 'server' | 'tool' | { readonly digest: string }> {
    return this.db.$transaction(async (transaction) => {
      await transaction.$queryRawUnsafe('SELECT 1 FROM "mcp_broker"."server" WHERE "id" = $1::uuid FOR UPDATE', id);
      const before = await transaction.brokerServer.findUnique({ where: { id } });
      if (before === null) return 'server';
      const held = heldToolsOf(before);
      const found = held.find((one) => one.tool === tool);
      if (found === undefined) return 'tool';
      if (found.digest !== digest) return { digest: found.digest };
      const list = await showTools(transaction, before, { tools: [found.after], at });
      const row = await transaction.brokerServer.update({
        where: { id },
        data: {
          ...list,
          acceptedTools: JSON.stringify({ ...acceptedToolsOf(before), [tool]: digest }),
          heldTools: JSON.stringify(held.filter((one) => one.tool !== tool)),
        },
      });
      await appendAudit(transaction, OWNER, { ...audit, at: at.toISOString(), afterDigest: digest });
      return { row, moved: await tell(transaction, { rows: [row], at, owner: row.owner }) };
    });
  }
}
