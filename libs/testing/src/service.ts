import type { ServiceName } from '@ambit/contracts';
import { startService as start, type RunningService, type ServiceOptions } from '@ambit/service';
import type { Type } from '@nestjs/common';
import type { z } from 'zod';

export interface TestServiceOptions<S extends z.ZodObject> extends ServiceOptions<S> {
  readonly nats: { readonly url: string };
  readonly postgres?: { readonly url: string } | undefined;
  /** Further environment variables. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** Starts a service as its main.ts does, in this process, on the test's servers. `get(Class)` of its `app` reaches a provider. */
export function startService<S extends z.ZodObject>(name: ServiceName, module: Type, options: TestServiceOptions<S>): Promise<RunningService> {
  const { nats, postgres, environment, ...rest } = options;
  return start(name, module, {
    ...rest,
    environment: { AMBIT_LOG_LEVEL: process.env['AMBIT_LOG_LEVEL'] ?? 'warn', NATS_URL: nats.url, DATABASE_URL: postgres?.url, OPS_PORT: '0', ...environment },
  });
}
