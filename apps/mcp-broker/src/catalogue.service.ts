import { fault, mcpBroker, ToolDefinition, type Parsed, type Returns, type ServerHead } from '@ambit/contracts';
import { pageOfTools } from '@ambit/mcp';
import { Inject, Injectable } from '@nestjs/common';
import { z } from 'zod';
import { InstanceService } from './instance.service.js';
import { ServerRepository } from './server.repository.js';
import { authorizationOf, subjectFor } from './domain/authorization.js';
import { headOf, specOf, type ServerRow } from './server.view.js';
import { SkillSwitch } from './skill-switch.service.js';

const PAGE_BYTES = 256 * 1024;
const KEPT = 32;
const Tools = z.array(ToolDefinition);

interface Whose {
  readonly agentId: string | undefined;
  readonly principalId: string | undefined;
}

/** What ingress reads: versions of every server, and the last good tools of each; asks no server. */
@Injectable()
export class CatalogueService {
  /** By hash, so an entry is never wrong; the least recently read goes first. */
  private readonly parsed = new Map<string, readonly ToolDefinition[]>();

  constructor(
    @Inject(ServerRepository) private readonly servers: ServerRepository,
    @Inject(InstanceService) private readonly instances: InstanceService,
    @Inject(SkillSwitch) private readonly switches: SkillSwitch,
  ) {}

  async heads({
    projectId,
    limit,
    agentId,
    principalId,
  }: Parsed<typeof mcpBroker.catalogueHeads>): Promise<Returns<typeof mcpBroker.catalogueHeads>> {
    // Owners first: a change in between then makes the epoch too old, never the servers.
    const owners = await this.servers.owners();
    const rows = await this.servers.list({ projectId }, { limit });
    const mcpSkills = await this.switches.isOn();
    return {
      // The newest alone could hide that another one moved.
      epoch: owners.reduce((sum, { epoch }) => sum + epoch, 0),
      servers: await this.own(
        rows.map((row) => headOf(row, this.instances.isConnecting(row.id))),
        rows,
        { agentId, principalId },
      ),
      mcpSkills,
    };
  }

  /** Where a server takes everybody's own credentials, the list that was read with them counts. */
  private async own(heads: readonly ServerHead[], rows: readonly ServerRow[], whose: Whose): Promise<ServerHead[]> {
    const subjects = new Map(
      rows.flatMap((row) => {
        const subject = subjectFor(authorizationOf(specOf(row).transport), {
          agentId: whose.agentId ?? '',
          principalId: whose.principalId,
        });
        return subject === undefined || subject === 'shared' ? [] : [[row.id, subject] as const];
      }),
    );
    const lists = await this.servers.ownCatalogues([...subjects.keys()], [...new Set(subjects.values())]);
    return heads.map((head) => {
      const list = lists.find(
        ({ serverId, subject, generation }) =>
          serverId === head.serverId && subject === subjects.get(serverId) && generation === head.configGeneration,
      );
      return list === undefined ? head : { ...head, catalogHash: list.catalogHash, isOwn: true };
    });
  }

  async page({ serverId, catalogHash, offset }: Parsed<typeof mcpBroker.cataloguePage>): Promise<Returns<typeof mcpBroker.cataloguePage>> {
    return pageOfTools(this.remember(catalogHash) ?? (await this.load(serverId, catalogHash)), offset, PAGE_BYTES);
  }

  private async load(serverId: string, catalogHash: string): Promise<readonly ToolDefinition[]> {
    const stored = await this.servers.catalogue(serverId, catalogHash);
    if (stored === null && (await this.servers.find({ id: serverId })) === null) throw fault(mcpBroker.cataloguePage, 'SERVER_UNKNOWN');
    if (stored === null) throw fault(mcpBroker.cataloguePage, 'CATALOGUE_MOVED');
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
