import { z } from 'zod';

const list = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);

/** Settings of a process that connects to addresses which people configure. */
export const EgressConfig = z.object({
  /** Address ranges that MCP servers and webhooks may have although they are private, in CIDR form, separated by commas; loopback by default. */
  AMBIT_EGRESS_ALLOW: list.default(['127.0.0.0/8', '::1/128']),
});
