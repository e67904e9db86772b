import { z } from 'zod';

const List = z
  .string()
  .max(4_096)
  .transform((text) => text.split(',').map((item) => item.trim().toLowerCase()))
  .pipe(z.array(z.string().min(1)).max(100));

export const EdgeConfig = z.object({
  /** Port of the MCP endpoint. */
  AMBIT_EDGE_PORT: z.coerce.number().int().min(0).max(65_535).default(8_090),
  /** 32 bytes, hexadecimal or base64, the same for every replica: seals what clients carry. Without it one is made, which no other replica knows. */
  AMBIT_EDGE_KEY: z.string().min(43).max(100).optional(),
  /** Names under which the endpoint is reached, without ports. */
  AMBIT_EDGE_HOSTS: List.prefault('localhost,127.0.0.1,[::1]'),
  /** Host names of web pages whose scripts may use it. @default the names above */
  AMBIT_EDGE_ORIGINS: List.optional(),
  /** The endpoint's address as clients know it. @default what they ask for */
  AMBIT_EDGE_URL: z.url({ protocol: /^https?$/ }).optional(),
  /** Addresses of authorization servers whose tokens are told to clients as the way in. */
  AMBIT_EDGE_AUTHORIZATION_SERVERS: z
    .string()
    .max(4_096)
    .transform((text) => text.split(',').map((item) => item.trim()))
    .pipe(z.array(z.url()).max(10))
    .optional(),
  /** How long a call waits for a person's decision where the client cannot ask one itself. */
  AMBIT_EDGE_WAIT_MS: z.coerce.number().int().min(0).max(600_000).default(30_000),
});
export type EdgeConfig = z.output<typeof EdgeConfig>;
