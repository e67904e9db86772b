import { fault, skillStore, type Parsed, type Returns, type Skill } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { effectiveSkills } from './domain/effective.js';
import { IntakeService } from './intake.service.js';
import { changeOf, type Context } from './skill.change.js';
import { ScopeRepository } from './scope.repository.js';
import { ScriptRepository } from './script.repository.js';
import { SkillRepository, type Entry, type EntryWithVersion } from './skill.repository.js';
import { SkillSwitch } from './skill-switch.service.js';
import { viewOf } from './skill.view.js';

/** An agent's skills: put, switched, taken away; what is effective. */
@Injectable()
export class SkillService {
  constructor(
    private readonly intake: IntakeService,
    private readonly repository: SkillRepository,
    private readonly scripts: ScriptRepository,
    private readonly master: SkillSwitch,
    private readonly scopes: ScopeRepository,
  ) {}

  async put(request: Parsed<typeof skillStore.putSkill>, context: Context): Promise<Skill> {
    if (request.archive === undefined && request.files === undefined)
      throw fault(skillStore.putSkill, 'SKILL_INVALID', { reason: 'send files or an archive' });
    const life = await this.scopes.life(request.agentId);
    const version =
      request.archive === undefined ? await this.intake.fromFiles(request.files ?? []) : await this.intake.fromArchive(request.archive);
    const { name } = version.facts;
    const known = await this.repository.find(request.agentId, name);
    if (known?.entry.digest === version.digest && known.entry.set === request.set && request.ifVersion === undefined) return viewOf(known); // nothing moves
    const change = changeOf(request, {
      name,
      reason: known === undefined ? 'installed' : 'updated',
      context,
      digests: [known?.entry.digest ?? null, version.digest],
    });
    await this.repository.change(change, (entry, now) => {
      // The agent for whom it was put was deleted meanwhile.
      if (now !== life) throw fault(skillStore.putSkill, 'VERSION_CONFLICT', { version: entry?.version ?? 0 });
      if (request.ifVersion !== undefined && request.ifVersion !== (entry?.version ?? 0))
        throw fault(skillStore.putSkill, 'VERSION_CONFLICT', { version: entry?.version ?? 0 });
      return {
        agentId: request.agentId,
        name,
        projectId: request.projectId,
        digest: version.digest,
        enabled: entry?.enabled ?? true,
        source: request.source,
        set: request.set,
        folder: null,
        version: (entry?.version ?? 0) + 1,
        updatedAt: context.startedAt,
      };
    });
    return this.view(request.agentId, name);
  }

  async get(agentId: string, name: string): Promise<Returns<typeof skillStore.getSkill>> {
    const found = await this.found(agentId, name);
    return { ...viewOf(found), tree: [...found.version.tree] };
  }

  async list(request: Parsed<typeof skillStore.listSkills>): Promise<Returns<typeof skillStore.listSkills>> {
    const { agentId, projectId, set, cursor, limit } = request;
    const after = cursor === undefined ? undefined : readCursor(cursor);
    const found = await this.repository.list(
      {
        ...(agentId === undefined ? {} : { agentId }),
        ...(projectId === undefined ? {} : { projectId }),
        ...(set === undefined ? {} : { set }),
      },
      { limit: limit + 1, ...(after === undefined ? {} : { after }) },
    );
    const last = found.length > limit ? found[limit - 1]?.entry : undefined;
    return { items: found.slice(0, limit).map(viewOf), ...(last === undefined ? {} : { cursor: `${last.agentId}/${last.name}` }) };
  }

  async setEnabled(agentId: string, name: string, switching: { readonly enabled: boolean; readonly context: Context }): Promise<Skill> {
    const found = await this.found(agentId, name);
    if (found.entry.enabled === switching.enabled) return viewOf(found);
    const { digest, projectId, set } = found.entry;
    const change = changeOf(
      { agentId, projectId, set },
      { name, reason: switching.enabled ? 'enabled' : 'disabled', context: switching.context, digests: [digest, digest] },
    );
    await this.repository.change(change, (entry) => ({
      ...still(entry),
      enabled: switching.enabled,
      version: still(entry).version + 1,
      updatedAt: switching.context.startedAt,
    }));
    return this.view(agentId, name);
  }

  async remove(agentId: string, name: string, context: Context): Promise<{ deleted: boolean }> {
    const found = await this.repository.find(agentId, name);
    if (found === undefined) {
      const contributed = (await this.repository.contributions(null, null)).find(({ version }) => version.facts?.name === name);
      if (contributed !== undefined) throw fault(skillStore.deleteSkill, 'PLUGIN_OWNED', { owner: contributed.owner });
      throw fault(skillStore.deleteSkill, 'SKILL_NOT_FOUND');
    }
    const { digest, projectId, set } = found.entry;
    await this.repository.change(
      changeOf({ agentId, projectId, set }, { name, reason: 'removed', context, digests: [digest, null] }),
      () => 'delete',
    );
    return { deleted: true };
  }

  async effective({ agentId, plugins }: Parsed<typeof skillStore.effectiveSkills>): Promise<Returns<typeof skillStore.effectiveSkills>> {
    // The epoch is read first: a change meanwhile makes the answer newer than it says, never older.
    const owners = plugins === null ? null : ['builtin', ...plugins.map((id) => `plugin:${id}`)];
    const epoch = await this.repository.epoch(agentId, owners);
    const [isOn, own, contributed, scriptsOf] = await Promise.all([
      this.master.isOn(),
      this.repository.list({ agentId }, { limit: 1_000 }),
      this.repository.contributions(null, owners),
      this.scripts.of([agentId]),
    ]);
    if (!isOn) return { epoch, skills: [] };
    const skills = effectiveSkills(
      agentId,
      own.map(({ entry, version, scripts }) => ({ facts: version.facts, digest: entry.digest, enabled: entry.enabled, scripts })),
      contributed.map(({ owner, version: { facts, digest } }) => ({
        owner,
        facts,
        digest,
        scripts: scriptsOf({ agentId, name: facts?.name ?? '', digest }),
      })),
    );
    return { epoch, skills: skills.slice(0, 1_000) };
  }

  private async found(agentId: string, name: string): Promise<EntryWithVersion> {
    const found = await this.repository.find(agentId, name);
    if (found === undefined) throw fault(skillStore.getSkill, 'SKILL_NOT_FOUND');
    return found;
  }

  private async view(agentId: string, name: string): Promise<Skill> {
    return viewOf(await this.found(agentId, name));
  }
}

function still(entry: Entry | null): Entry {
  if (entry === null) throw fault(skillStore.enableSkill, 'SKILL_NOT_FOUND');
  return entry;
}

function readCursor(cursor: string): { agentId: string; name: string } {
  const [agentId = '', name = ''] = cursor.split('/');
  return { agentId, name };
}
