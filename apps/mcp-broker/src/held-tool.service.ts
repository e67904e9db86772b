import type { Call } from '@ambit/bus';
import { fault, mcpBroker, type Parsed, type Returns } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';
import { auditOf } from './audit.js';
import { Epochs } from './epochs.js';
import { HeldToolRepository } from './held-tool.repository.js';
import { ServerRepository } from './server.repository.js';
import { ServerService } from './server.service.js';
import { heldToolsOf } from './server.view.js';

/** Tools that became others since they were accepted: shown to a person, and to nobody else until they are accepted again. */
@Injectable()
export class HeldToolService {
  constructor(
    @Inject(ServerRepository) private readonly servers: ServerRepository,
    @Inject(HeldToolRepository) private readonly held: HeldToolRepository,
    @Inject(ServerService) private readonly views: ServerService,
    @Inject(Epochs) private readonly epochs: Epochs,
  ) {}

  async get({ id, tool }: Parsed<typeof mcpBroker.getHeldTool>): Promise<Returns<typeof mcpBroker.getHeldTool>> {
    const row = await this.servers.find({ id });
    if (row === null) throw fault(mcpBroker.getHeldTool, 'SERVER_UNKNOWN');
    const found = heldToolsOf(row).find((one) => one.tool === tool);
    if (found === undefined) throw fault(mcpBroker.getHeldTool, 'TOOL_NOT_HELD');
    return found;
  }

  async accept({ id, tool, digest }: Parsed<typeof mcpBroker.acceptTool>, call: Call): Promise<Returns<typeof mcpBroker.acceptTool>> {
    const before = await this.servers.find({ id });
    const audit = auditOf(call, { action: 'tool.accept', target: `server:${id}/${tool}`, projectId: before?.projectId ?? null });
    const accepted = await this.held.accept(id, { tool, digest, at: new Date() }, audit);
    if (accepted === 'server') throw fault(mcpBroker.acceptTool, 'SERVER_UNKNOWN');
    if (accepted === 'tool') throw fault(mcpBroker.acceptTool, 'TOOL_NOT_HELD');
    if ('digest' in accepted) throw fault(mcpBroker.acceptTool, 'DEFINITION_MOVED', { digest: accepted.digest });
    await this.epochs.publish(accepted.moved);
    return this.views.get({ id });
  }
}
