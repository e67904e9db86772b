import { z } from 'zod';

export const SkillStoreConfig = z.object({
  /** A folder whose skills are mirrored into the store; see docs/skills.md. */
  SKILLS_ROOT: z.string().min(1).optional(),
  /** How often that folder is looked at where the system does not tell of its changes, in ms. */
  SKILLS_POLL_MS: z.coerce.number().int().min(50).max(3_600_000).default(2_000),
  /** How often it is where the system does. */
  SKILLS_RESCAN_MS: z.coerce.number().int().min(1_000).max(86_400_000).default(60_000),
});
export type SkillStoreConfig = z.output<typeof SkillStoreConfig>;
