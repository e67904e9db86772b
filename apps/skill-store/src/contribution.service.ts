import type { Call } from '@ambit/bus';
import { fault, skillStore, type Parsed, type Returns } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { IntakeService } from './intake.service.js';
import type { Change } from './change.repository.js';
import { SkillRepository } from './skill.repository.js';

type Context = Pick<Call, 'principal' | 'actor' | 'via' | 'startedAt' | 'traceId'>;

/** Plugins' read-only skills: all of a plugin's or none, and gone with it. */
@Injectable()
export class ContributionService {
  constructor(
    private readonly intake: IntakeService,
    private readonly repository: SkillRepository,
  ) {}

  async put(
    { owner, projectId, skills }: Parsed<typeof skillStore.putContribution>,
    context: Context,
  ): Promise<Returns<typeof skillStore.putContribution>> {
    const versions = [];
    for (const { files } of skills) versions.push(await this.intake.fromFiles(files));
    const names = versions.map((version) => version.facts.name);
    const twice = names.find((name, index) => names.indexOf(name) !== index);
    if (twice !== undefined) throw fault(skillStore.putContribution, 'NAME_TAKEN', { name: twice, owner });
    const others = (await this.repository.contributions(null, null)).filter((one) => one.owner !== owner);
    for (const other of others) {
      const name = names.find((one) => one === other.version.facts?.name);
      if (name !== undefined) throw fault(skillStore.putContribution, 'NAME_TAKEN', { name, owner: other.owner });
    }
    const rows = versions.map((version) => ({
      owner,
      name: version.facts.name,
      projectId,
      digest: version.digest,
      updatedAt: context.startedAt,
    }));
    await this.repository.replaceContributions({ owner, ...changeOf(owner, { reason: 'contributed', names, context }) }, rows);
    return { names };
  }

  async revoke({ owner }: Parsed<typeof skillStore.revokeOwner>, context: Context): Promise<Returns<typeof skillStore.revokeOwner>> {
    const names = (await this.repository.contributions(null, [owner])).flatMap(({ version }) =>
      version.facts === null ? [] : [version.facts.name],
    );
    return {
      withdrawn: await this.repository.replaceContributions({ owner, ...changeOf(owner, { reason: 'withdrawn', names, context }) }, []),
    };
  }
}

function changeOf(
  owner: string,
  what: { readonly reason: Change['reason']; readonly names: readonly string[]; readonly context: Context },
): Change {
  const { principal, actor, via, traceId, startedAt } = what.context;
  return {
    at: startedAt,
    agentId: '*',
    reason: what.reason,
    names: what.names,
    audit: {
      actor: actor ?? null,
      principal: principal ?? null,
      via: via ?? null,
      projectId: null,
      action: `contribution.${what.reason}`,
      target: owner,
      beforeDigest: null,
      afterDigest: null,
      rule: null,
      reason: what.names.join(', ').slice(0, 2_000),
      traceId,
      retention: 'audit',
    },
  };
}
