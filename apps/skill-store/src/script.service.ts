import { fault, skillStore, type Parsed, type Returns } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { changeOf, type Context } from './skill.change.js';
import { ScopeRepository } from './scope.repository.js';
import { ScriptRepository } from './script.repository.js';
import { SkillRepository, type Version } from './skill.repository.js';
import { SkillSwitch } from './skill-switch.service.js';

/** What an agent's skill is now, whoever brought it. */
interface Current {
  readonly version: Version;
  readonly projectId: string;
  readonly set: string | null;
}

/** Which scripts of an agent's skills may be run: an administrator says it of one version, and it holds for no other. */
@Injectable()
export class ScriptService {
  constructor(
    private readonly skills: SkillRepository,
    private readonly scripts: ScriptRepository,
    private readonly master: SkillSwitch,
    private readonly scopes: ScopeRepository,
  ) {}

  async enable(request: Parsed<typeof skillStore.enableScript>, context: Context): Promise<Returns<typeof skillStore.enableScript>> {
    const { agentId, name, digest, path } = request;
    const life = await this.scopes.life(agentId);
    const current = await this.#current(agentId, name);
    if (current === undefined) throw fault(skillStore.enableScript, 'SKILL_NOT_FOUND');
    if (current.version.digest !== digest) throw fault(skillStore.enableScript, 'SKILL_CHANGED', { digest: current.version.digest });
    if (!current.version.tree.some((file) => file.path === path)) throw fault(skillStore.enableScript, 'SCRIPT_UNKNOWN');
    const change = changeOf({ agentId, ...current }, { name, reason: 'script-enabled', context, digests: [digest, digest], about: path });
    if (!(await this.scripts.isEnabled(request)) && !(await this.scripts.enable(change, { ...request, life })))
      throw fault(skillStore.enableScript, 'SKILL_NOT_FOUND');
    return { digest, scripts: await this.#of({ agentId, name, digest }) };
  }

  async disable(request: Parsed<typeof skillStore.disableScript>, context: Context): Promise<Returns<typeof skillStore.disableScript>> {
    const { agentId, name, path } = request;
    const current = await this.#current(agentId, name);
    if (current === undefined) throw fault(skillStore.disableScript, 'SKILL_NOT_FOUND');
    const { digest } = current.version;
    await this.scripts.disable(
      changeOf({ agentId, ...current }, { name, reason: 'script-disabled', context, digests: [digest, digest], about: path }),
      request,
    );
    return { scripts: await this.#of({ agentId, name, digest }) };
  }

  /** What a run of this script needs: refused unless exactly this version is what the skill is now, and the script is enabled of it. */
  async read(request: Parsed<typeof skillStore.readScript>): Promise<Returns<typeof skillStore.readScript>> {
    const current = (await this.master.isOn()) ? await this.#current(request.agentId, request.name) : undefined;
    if (current === undefined) throw fault(skillStore.readScript, 'SKILL_NOT_FOUND');
    const { version } = current;
    if (version.digest !== request.digest || !(await this.scripts.isEnabled(request)))
      throw fault(skillStore.readScript, 'SCRIPT_NOT_ENABLED');
    return { files: [...version.tree] };
  }

  async #of(of: { readonly agentId: string; readonly name: string; readonly digest: string }): Promise<string[]> {
    return (await this.scripts.of([of.agentId]))(of);
  }

  async #current(agentId: string, name: string): Promise<Current | undefined> {
    const own = await this.skills.find(agentId, name);
    // One that a person switched off hides a plugin's of that name too.
    if (own?.version.valid === true)
      return own.entry.enabled ? { version: own.version, projectId: own.entry.projectId, set: own.entry.set } : undefined;
    const given = (await this.skills.contributions(null, null)).find(({ version }) => version.facts?.name === name);
    return given === undefined ? undefined : { version: given.version, projectId: given.projectId, set: null };
  }
}
