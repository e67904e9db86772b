import { z } from 'zod';

/** What every service reads from its environment; an app adds its own names. */
export const ServiceConfig = z.object({
  NATS_URL: z.string().min(1).default('nats://127.0.0.1:4222'),
  /** Path of a NATS credentials file. */
  NATS_CREDS: z.string().min(1).optional(),
  DATABASE_URL: z
    .string()
    .regex(/^postgres(ql)?:\/\//, 'a postgresql:// URL')
    .optional(),
  /** The address that ports are opened on; in a container `0.0.0.0`. */
  AMBIT_LISTEN: z.string().min(1).default('127.0.0.1'),
  /** Of a service with HTTP: how long it still serves after it said that it is ready no more, so that whoever spreads requests turns to others first. */
  AMBIT_DRAIN_MS: z.coerce.number().int().min(0).max(60_000).default(0),
  /** Days that audit records are kept; 0 = for ever. */
  AMBIT_KEEP_AUDIT_DAYS: z.coerce.number().min(0).max(36_500).default(0),
  OPS_PORT: z.coerce.number().int().min(0).max(65_535).default(0),
  AMBIT_LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error', 'silent']).default('info'),
  /** `1`: ends when its standard input does, so that no child outlives the process that started it. */
  AMBIT_EXIT_WITH_PARENT: z.enum(['0', '1']).default('0'),
});
export type ServiceConfig = z.output<typeof ServiceConfig>;

/** Names of environment variables and what was wrong with each; never their values. */
export class BadConfiguration extends Error {
  override readonly name = 'BadConfiguration';
}

/** Parses the environment once. An empty variable counts as absent. */
export function readConfig<S extends z.ZodType>(
  schema: S,
  environment: Readonly<Record<string, string | undefined>>,
): Readonly<z.output<S>> {
  const present = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''));
  const parsed = schema.safeParse(present);
  if (parsed.success) return Object.freeze(parsed.data);
  const lines = parsed.error.issues.map((issue) => `- ${issue.path.map(String).join('.') || 'the environment'}: ${issue.message}`);
  throw new BadConfiguration(`The configuration is wrong; set these environment variables:\n${lines.join('\n')}`);
}
