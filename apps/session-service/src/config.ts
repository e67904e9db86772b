import { z } from 'zod';

const KeptDays = z.coerce.number().min(0).max(36_500);

export const SessionServiceConfig = z.object({
  /** Where people reach the HTTP surface; goes into the links of requests for a decision. */
  AMBIT_PUBLIC_URL: z.url().optional(),
  /** Days that what was said is kept; 0 = for ever. */
  AMBIT_KEEP_MESSAGES_DAYS: KeptDays.default(0),
  /** Days that a snapshot is kept after its last use; 0 = for ever. */
  AMBIT_KEEP_SNAPSHOTS_DAYS: KeptDays.default(180),
});
export type SessionServiceConfig = z.output<typeof SessionServiceConfig>;
