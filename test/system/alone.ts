import type { ServiceName } from '@ambit/contracts';
import { freePort } from '@ambit/embedded';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ServiceProcess } from './service-process.js';

export interface AloneOptions {
  readonly natsUrl: string;
  readonly databaseUrl: string;
  /** Further environment variables. */
  readonly environment: Readonly<Record<string, string>>;
}

/** One built service as a process of its own, on servers that a test has already. */
export async function startAlone(
  name: ServiceName,
  { natsUrl, databaseUrl, environment }: AloneOptions,
): Promise<{ stop(): Promise<void> }> {
  const opsPort = await freePort();
  const folder = await mkdtemp(join(tmpdir(), `ambit-${name}-`));
  const service = new ServiceProcess({
    name,
    label: name,
    program: fileURLToPath(new URL(`../../apps/${name}/dist/main.js`, import.meta.url)),
    environment: {
      ...process.env,
      NODE_OPTIONS: '',
      AMBIT_LOG_LEVEL: 'info',
      NATS_URL: natsUrl,
      DATABASE_URL: databaseUrl,
      OPS_PORT: String(opsPort),
      AMBIT_DATA_DIR: folder,
      ...environment,
    },
    opsPort,
    logFile: join(folder, 'log'),
  });
  const stop = async (): Promise<void> => {
    await service.stop();
    await rm(folder, { recursive: true, force: true });
  };
  await service.start().catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return { stop };
}
