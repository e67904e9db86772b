import { Bus, type Call } from '@ambit/bus';
import { BoundedMap, allows } from '@ambit/capability';
import { mcpBroker, type Policy, type ServerHead, type ServerSkill, type ToolDefinition } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';

const KEPT = 500;
const AT_ONCE = 8;
const MAX_PAGES = 256;

/** The tools of servers by the hash of their list: a hash never names another list, so what was read is kept. */
@Injectable()
export class Catalogues {
  readonly #kept = new BoundedMap<string, readonly ToolDefinition[]>(KEPT);
  readonly #keptSkills = new BoundedMap<string, readonly ServerSkill[]>(KEPT);

  constructor(private readonly bus: Bus) {}

  /** The lists of the servers that the policies allow, or of all for whoever explains. One that cannot be read is empty. */
  async of(
    heads: readonly ServerHead[],
    wanted: { readonly policies: readonly Policy[] | 'all'; readonly within?: Call },
  ): Promise<Map<string, readonly ToolDefinition[]>> {
    const { policies, within } = wanted;
    const needed = heads.filter(({ slug, serverId, enabled, catalogHash }) => {
      if (catalogHash === null) return false;
      return policies === 'all' || (enabled && policies.every(({ servers }) => allows(servers, serverId, slug)));
    });
    const found = new Map<string, readonly ToolDefinition[]>();
    for (let start = 0; start < needed.length; start += AT_ONCE) {
      await Promise.all(
        needed.slice(start, start + AT_ONCE).map(async ({ serverId, catalogHash }) => {
          if (catalogHash !== null) found.set(serverId, await this.#list(serverId, catalogHash, within));
        }),
      );
    }
    return found;
  }

  /** The skills of these servers by the hash of their list, for whoever composes. One whose list moved meanwhile is asked for again with its head. */
  async skillsOf(heads: readonly ServerHead[], within?: Call): Promise<Map<string, readonly ServerSkill[]>> {
    const found = new Map<string, readonly ServerSkill[]>();
    const needed = heads.filter(({ offers }) => offers?.skills !== null && offers?.skills !== undefined);
    for (let start = 0; start < needed.length; start += AT_ONCE) {
      await Promise.all(
        needed.slice(start, start + AT_ONCE).map(async ({ serverId, offers }) => {
          const hash = offers?.skills;
          if (hash !== null && hash !== undefined) found.set(serverId, await this.#skills(serverId, hash, within));
        }),
      );
    }
    return found;
  }

  async #skills(serverId: string, hash: string, within: Call | undefined): Promise<readonly ServerSkill[]> {
    const key = `${serverId} ${hash}`;
    const kept = this.#keptSkills.get(key);
    if (kept !== undefined) return kept;
    const skills: ServerSkill[] = [];
    for (let offset = 0, page = 0; page < MAX_PAGES; page++) {
      const answer = await this.bus.call(mcpBroker.skillPage, { serverId, hash, offset }, { within });
      skills.push(...answer.skills);
      if (answer.next === null) break;
      offset = answer.next;
    }
    this.#keptSkills.set(key, skills);
    return skills;
  }

  async #list(serverId: string, catalogHash: string, within: Call | undefined): Promise<readonly ToolDefinition[]> {
    const key = `${serverId} ${catalogHash}`;
    const kept = this.#kept.get(key);
    if (kept !== undefined) return kept;
    const tools: ToolDefinition[] = [];
    for (let offset = 0, page = 0; page < MAX_PAGES; page++) {
      const answer = await this.bus.call(mcpBroker.cataloguePage, { serverId, catalogHash, offset }, { within });
      tools.push(...answer.tools);
      if (answer.next === null) break;
      offset = answer.next;
    }
    this.#kept.set(key, tools);
    return tools;
  }
}
