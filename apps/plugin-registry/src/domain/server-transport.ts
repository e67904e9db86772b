import { z } from 'zod';

/** A value that an administrator stores, by the name of its secret. */
const Stored = z.strictObject({ secret: z.string() });
const Value = z.union([z.string().max(16 * 1024), Stored]);

/** One token: a bare name looked up on PATH, or `./path` inside the package. */
const Command = z
  .string()
  .min(1)
  .max(1_024)
  .refine(
    (command) => !/[\s\\]/.test(command) && (!command.includes('/') || (command.startsWith('./') && !command.split('/').includes('..'))),
    'a bare name, or ./path inside the package',
  );
const Environment = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/);

const Stdio = z.strictObject({
  type: z.literal('stdio'),
  command: Command,
  args: z.array(z.string().max(8_192)).max(256).default([]),
  env: z
    .record(Environment, Value)
    .default({})
    .refine((env) => !('PLUGIN_ROOT' in env) && !('PLUGIN_DATA' in env), 'env may not set PLUGIN_ROOT or PLUGIN_DATA'),
  cwd: z.string().max(1_024).optional(),
});
const Remote = z.strictObject({
  type: z.enum(['streamable-http', 'sse']),
  url: z.url().max(2_048).refine(isReachable, 'an https address, or one of this machine, without a name, a password or a fragment'),
  headers: z.record(z.string().max(128), Value).default({}),
});

/** How a server of a plugin is reached, whatever its format. */
export const ServerTransport = z.discriminatedUnion('type', [Stdio, Remote]);
export type ServerTransport = z.output<typeof ServerTransport>;

export const PluginServer = z.object({
  id: z.string(),
  transport: ServerTransport,
  /** The file of the package that lists its tools; such a server is started at its first call. */
  catalogue: z.string().optional(),
});
export type PluginServer = z.output<typeof PluginServer>;

/** The ids that servers may have in a package. */
export const ServerId = z.string().regex(/^[^\p{C}]{1,64}$/u, 'an id has 1 to 64 characters and no control characters');

function isReachable(address: string): boolean {
  if (!URL.canParse(address)) return false;
  const url = new URL(address);
  const isHere = url.hostname === 'localhost' || url.hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(url.hostname);
  return (url.protocol === 'https:' || (url.protocol === 'http:' && isHere)) && `${url.username}${url.password}${url.hash}` === '';
}
