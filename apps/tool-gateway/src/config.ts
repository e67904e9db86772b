import { z } from 'zod';

const KeptDays = z.coerce.number().min(0).max(36_500);

export const ToolGatewayConfig = z.object({
  /** Days that the arguments of calls are kept for people; 0 = for ever. */
  AMBIT_KEEP_ARGUMENTS_DAYS: KeptDays.default(90),
  /** Days that a large result is kept after it was stored. */
  AMBIT_KEEP_ARTIFACTS_DAYS: KeptDays.positive().default(7),
});
export type ToolGatewayConfig = z.output<typeof ToolGatewayConfig>;
