import { z } from 'zod';

export const SessionServiceConfig = z.object({
  /** Where people reach the HTTP surface; goes into the links of requests for a decision. */
  AMBIT_PUBLIC_URL: z.url().optional(),
  /** `1`: skills that MCP servers offer may be composed. */
  FEATURE_MCP_SKILLS: z.enum(['0', '1']).default('0'),
});
export type SessionServiceConfig = z.output<typeof SessionServiceConfig>;
