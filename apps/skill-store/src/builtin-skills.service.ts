import { digestOfBytes } from '@ambit/bundle';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { SkillBlobs } from './blobs.js';
import { ContributionService } from './contribution.service.js';
import { DRAFTING_SKILL, SETTINGS_SKILL } from './domain/builtin-skills.js';
import { IntakeService } from './intake.service.js';
import { SkillRepository } from './skill.repository.js';

const OWNER = 'builtin';

/** The platform's own skills: read-only contributions like a plugin's, and of this release's wording. */
@Injectable()
export class BuiltinSkills implements OnApplicationBootstrap {
  constructor(
    @Inject(SkillBlobs) private readonly blobs: SkillBlobs,
    @Inject(IntakeService) private readonly intake: IntakeService,
    @Inject(ContributionService) private readonly contributions: ContributionService,
    @Inject(SkillRepository) private readonly repository: SkillRepository,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  /** A store that cannot take them serves everybody else's skills all the same. */
  async onApplicationBootstrap(): Promise<void> {
    try {
      await this.#contribute();
    } catch (error) {
      this.log.error({ error }, 'the platform’s own skills could not be stored; agents do without them');
    }
  }

  async #contribute(): Promise<void> {
    const skills = await Promise.all([DRAFTING_SKILL, SETTINGS_SKILL].map((text) => this.#stored(text)));
    const digests = new Set(skills.map(({ digest }) => digest));
    const standing = await this.repository.contributions(null, [OWNER]);
    // Saying the same again would move every agent's epoch at every start.
    if (standing.length === digests.size && standing.every(({ version }) => digests.has(version.digest))) return;
    await this.contributions.put(
      { owner: OWNER, projectId: 'default', skills: skills.map(({ files }) => ({ files })) },
      { startedAt: new Date(), principal: undefined, actor: undefined, via: { kind: 'system', id: 'skill-store' }, traceId: '' },
    );
  }

  async #stored(text: string) {
    const bytes = new TextEncoder().encode(text);
    await this.blobs.add(bytes);
    const files = [{ path: 'SKILL.md', mode: 'file' as const, bytes: bytes.byteLength, digest: digestOfBytes(bytes) }];
    return { files, digest: (await this.intake.fromFiles(files)).digest };
  }
}
