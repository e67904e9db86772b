import { z } from 'zod';

const list = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);

export const BrokerConfig = z.object({
  /** 32 bytes in hexadecimal or base64: seals the values of secrets. Without it no secret can be stored here. */
  AMBIT_SEALING_KEY: z.string().min(1).optional(),
  /** A file that holds it instead. */
  AMBIT_SEALING_KEY_FILE: z.string().min(1).optional(),
  /** Address ranges that MCP servers may have although they are private, in CIDR form, separated by commas; loopback by default. */
  AMBIT_EGRESS_ALLOW: list.default(['127.0.0.0/8', '::1/128']),
  /** The one folder that secrets from files are read from. */
  AMBIT_SECRETS_DIR: z.string().min(1).default('/run/secrets'),
  /** Servers that start at once; more wait. */
  AMBIT_BROKER_STARTS: z.coerce.number().int().min(1).max(100).default(8),
});
export type BrokerConfig = z.output<typeof BrokerConfig>;
