import { z } from 'zod';

export const SkillStoreConfig = z.object({
  /** A folder whose skills are mirrored into the store; see docs/skills.md. */
  SKILLS_ROOT: z.string().min(1).optional(),
});
export type SkillStoreConfig = z.output<typeof SkillStoreConfig>;
