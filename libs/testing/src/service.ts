import type { ServiceName } from '@ambit/contracts';
import { startService as start, type RunningService, type ServiceOptions } from '@ambit/service';
import type { Type } from '@nestjs/common';
import type { z } from 'zod';
import { searchedLog, searchMetrics } from './leaks.js';

export interface TestServiceOptions<S extends z.ZodObject> extends ServiceOptions<S> {
  readonly nats: { readonly url: string };
  readonly postgres?: { readonly url: string } | undefined;
  /** Further environment variables. */
  readonly environment?: Readonly<Record<string, string>>;
}

/**
 * Starts a service as its main.ts does, in this process, on the test's servers. `get(Class)` of its `app` reaches a provider. Its
 * log and its metrics are searched for planted secrets; `AMBIT_LOG_LEVEL` says what of the log is shown (`warn`).
 */
export async function startService<S extends z.ZodObject>(
  name: ServiceName,
  module: Type,
  options: TestServiceOptions<S>,
): Promise<RunningService> {
  const { nats, postgres, environment, ...rest } = options;
  const service = await start(name, module, {
    logTo: searchedLog(name, process.env['AMBIT_LOG_LEVEL'] ?? 'warn'),
    ...rest,
    environment: { AMBIT_LOG_LEVEL: 'info', NATS_URL: nats.url, DATABASE_URL: postgres?.url, OPS_PORT: '0', ...environment },
  });
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> =>
    (closing ??= searchMetrics(name, service.opsPort)
      // A service that a test took down has no numbers to search.
      .catch(() => undefined)
      .then(() => service.close()));
  return { ...service, close };
}
