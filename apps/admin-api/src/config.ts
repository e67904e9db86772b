import { EgressConfig } from '@ambit/egress';
import { z } from 'zod';

export const AdminApiConfig = EgressConfig.extend({
  /** Port of the HTTP API. */
  AMBIT_HTTP_PORT: z.coerce.number().int().min(0).max(65_535).default(8_080),
  /** Where browsers reach this API, as in https://ambit.example: sign-ins to MCP servers come back there. Left out: this machine’s own address. */
  AMBIT_PUBLIC_URL: z.url({ protocol: /^https?$/ }).optional(),
  /** Days that audit records are kept, as for every service; 0 = for ever. */
  AMBIT_KEEP_AUDIT_DAYS: z.coerce.number().min(0).max(36_500).default(0),
  /** The first administrator's token; without it one is made and printed when there is none at all. */
  AMBIT_BOOTSTRAP_TOKEN: z.string().min(16).max(200).optional(),
  /** Folder with the keys that sign workers’ credentials; without it worker isolation is off. */
  AMBIT_ADMIN_KEYS_DIR: z.string().min(1).optional(),
});
export type AdminApiConfig = z.output<typeof AdminApiConfig>;
