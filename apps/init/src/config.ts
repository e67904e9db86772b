import { z } from 'zod';

const Config = z.object({
  /** Where the installation's keys and credentials lie; without it identities are left alone. */
  AMBIT_KEYS_DIR: z.string().min(1).optional(),
  /** Instead of all keys, a folder with what renewing accounts needs: operator-signing.seed, system.creds and accounts.json. */
  AMBIT_ADMIN_KEYS_DIR: z.string().min(1).optional(),
  /** Where nats-server keeps account JWTs, as nats-server sees that path. */
  AMBIT_RESOLVER_DIR: z.string().min(1).default('/data/accounts'),
  /** Where each process's part of the keys is laid out in a folder of its own, to be mounted by that process alone. */
  AMBIT_HANDOUT_DIR: z.string().min(1).optional(),
  NATS_URL: z.string().min(1).optional(),
  NATS_CREDS: z.string().min(1).optional(),
  DATABASE_URL: z.string().min(1).optional(),
  /** Copies of every stream and bucket: 1, or 3 on a cluster of three servers or more. */
  AMBIT_STREAM_REPLICAS: z.coerce.number().int().min(1).max(5).default(1),
});
export type Config = z.output<typeof Config>;

/** Reads the environment; throws an Error that names each wrong variable. */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  const present = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const parsed = Config.safeParse(present);
  if (parsed.success) return parsed.data;
  throw new Error(parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('\n'));
}
