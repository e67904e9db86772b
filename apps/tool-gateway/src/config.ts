import { z } from 'zod';

const KeptDays = z.coerce.number().min(0).max(36_500);

export const ToolGatewayConfig = z.object({
  /** Days that the arguments of calls are kept for people; 0 = for ever. */
  AMBIT_KEEP_ARGUMENTS_DAYS: KeptDays.default(90),
  /** Days that a large result is kept after it was stored. */
  AMBIT_KEEP_ARTIFACTS_DAYS: KeptDays.positive().default(7),
  /** Who rates calls under the mode auto_approve: `rules`, or besides them a program of yours on the bus. */
  AMBIT_REVIEWER: z.enum(['rules', 'bus']).default('rules'),
  /** `1`: an event tells of each call that is about to be dispatched. */
  AMBIT_CALL_HOOKS: z.enum(['0', '1']).default('0'),
});
export type ToolGatewayConfig = z.output<typeof ToolGatewayConfig>;
