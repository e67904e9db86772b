import { fault, mcpBroker, ToolDefinition, type Parsed, type Returns } from '@ambit/contracts';
import { pageOfTools } from '@ambit/mcp';
import { Inject, Injectable } from '@nestjs/common';
import { z } from 'zod';
import { InstanceService } from './instance.service.js';
import { ServerRepository } from './server.repository.js';
import { headOf } from './server.view.js';

const PAGE_BYTES = 256 * 1024;
const KEPT = 32;
const Tools = z.array(ToolDefinition);

/** What ingress reads: versions of every server, and the last good tools of each; asks no server. */
@Injectable()
export class CatalogueService {
  /** By hash, so an entry is never wrong; the least recently read goes first. */
  private readonly parsed = new Map<string, readonly ToolDefinition[]>();

  constructor(
    @Inject(ServerRepository) private readonly servers: ServerRepository,
    @Inject(InstanceService) private readonly instances: InstanceService,
  ) {}

  async heads({ projectId, limit }: Parsed<typeof mcpBroker.catalogueHeads>): Promise<Returns<typeof mcpBroker.catalogueHeads>> {
    // Owners first: a change in between then makes the epoch too old, never the servers.
    const owners = await this.servers.owners();
    const rows = await this.servers.list({ projectId }, { limit });
    return {
      epoch: owners.reduce((newest, { epoch }) => Math.max(newest, epoch), 0),
      servers: rows.map((row) => headOf(row, this.instances.isConnecting(row.id))),
    };
  }

  async page({ serverId, catalogHash, offset }: Parsed<typeof mcpBroker.cataloguePage>): Promise<Returns<typeof mcpBroker.cataloguePage>> {
    return pageOfTools(this.remember(catalogHash) ?? (await this.load(serverId, catalogHash)), offset, PAGE_BYTES);
  }

  private async load(serverId: string, catalogHash: string): Promise<readonly ToolDefinition[]> {
    const stored = await this.servers.catalogue(serverId);
    if (stored === null && (await this.servers.find({ id: serverId })) === null) throw fault(mcpBroker.cataloguePage, 'SERVER_UNKNOWN');
    if (stored?.catalogHash !== catalogHash) throw fault(mcpBroker.cataloguePage, 'CATALOGUE_MOVED');
    const tools = Tools.parse(JSON.parse(stored.tools));
    this.parsed.set(catalogHash, tools);
    const [oldest] = this.parsed.keys();
    if (this.parsed.size > KEPT && oldest !== undefined) this.parsed.delete(oldest);
    return tools;
  }

  private remember(catalogHash: string): readonly ToolDefinition[] | undefined {
    const tools = this.parsed.get(catalogHash);
    if (tools === undefined) return undefined;
    this.parsed.delete(catalogHash);
    this.parsed.set(catalogHash, tools);
    return tools;
  }
}
