import { EgressConfig } from '@ambit/egress';
import { z } from 'zod';

export const BrokerConfig = EgressConfig.extend({
  /** 32 bytes in hexadecimal or base64: seals the values of secrets. Without it no secret can be stored here. */
  AMBIT_SEALING_KEY: z.string().min(1).optional(),
  /** A file that holds it instead; further lines hold the keys that it replaced. */
  AMBIT_SEALING_KEY_FILE: z.string().min(1).optional(),
  /** Keys that were replaced, separated by commas: what they sealed still opens, and is sealed anew with the current one. */
  AMBIT_SEALING_KEYS_OLD: z.string().min(1).optional(),
  /** The one folder that secrets from files are read from. */
  AMBIT_SECRETS_DIR: z.string().min(1).default('/run/secrets'),
  /** `1`: skills that MCP servers offer are found, where nobody switched it otherwise since. */
  FEATURE_MCP_SKILLS: z.enum(['0', '1']).default('0'),
  /** After how long the skills of a server are looked for again that does not tell of changes. */
  AMBIT_MCP_SKILLS_TTL_MS: z.coerce.number().int().min(100).max(86_400_000).default(300_000),
  /** Servers that start at once; more wait. */
  AMBIT_BROKER_STARTS: z.coerce.number().int().min(1).max(100).default(8),
});
export type BrokerConfig = z.output<typeof BrokerConfig>;
