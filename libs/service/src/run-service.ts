import { flushCompileCache } from 'node:module';
import type { ServiceName } from '@ambit/contracts';
import type { Type } from '@nestjs/common';
import type { z } from 'zod';
import type { ServiceOptions } from './service-options.js';
import { startService } from './start-service.js';

/** The whole of an app's main.ts: runs a service until a signal, or its parent's end, stops it. */
export async function runService<S extends z.ZodObject>(name: ServiceName, module: Type, options: ServiceOptions<S> = {}): Promise<void> {
  const stopped = stopAsked();
  try {
    const service = await startService(name, module, { ...options, environment: process.env });
    // Where NODE_COMPILE_CACHE is set: kept now, for a process that is killed keeps nothing.
    flushCompileCache();
    service.log.info({ reason: await stopped }, 'stopping');
    await service.close();
    process.exit(0);
  } catch (error) {
    // The log may not exist yet, so this one line goes out as it is.
    process.stderr.write(`${name}: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  }
}

/** Resolves with why the process is to stop. A second signal ends it at once, by Node's default. */
function stopAsked(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve(signal));
    if (process.env['AMBIT_EXIT_WITH_PARENT'] !== '1') return;
    for (const ending of ['end', 'close', 'error'] as const) process.stdin.once(ending, () => resolve('the parent process ended'));
    process.stdin.resume();
  });
}
