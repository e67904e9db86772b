import { fault, platformFault, pluginRegistry } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { OperationRepository } from './operation.repository.js';
import { PluginRepository, type Installation } from './plugin.repository.js';

/** A process that died holds a plugin so long. */
const HELD_MS = 6_000;
const KEPT_EVERY_MS = 2_000;
const LOOK_AGAIN_MS = 100;
const WAITS_MS = 50_000;

/** A plugin that one operation has to itself. What it writes is refused once another operation has taken the plugin over. */
export interface Held {
  readonly installation: Installation;
  readonly operation: string;
}

/** One operation a plugin at a time, over all replicas. */
@Injectable()
export class Operations {
  constructor(
    private readonly operations: OperationRepository,
    private readonly plugins: PluginRepository,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  /** Waits for its turn. Throws PLUGIN_UNKNOWN, and UNAVAILABLE when its turn does not come. */
  async exclusively<T>(id: string, work: (held: Held) => Promise<T>): Promise<T> {
    const until = performance.now() + WAITS_MS;
    for (;;) {
      await this.found(id);
      const done = await this.ifFree(id, work);
      if (done !== null) return done.result;
      if (performance.now() > until)
        throw platformFault('UNAVAILABLE', undefined, 'Another operation on this plugin takes long; nothing was done');
      await pause(LOOK_AGAIN_MS);
    }
  }

  /** Null where another operation has the plugin now. */
  async ifFree<T>(id: string, work: (held: Held) => Promise<T>): Promise<{ readonly result: T } | null> {
    const operation = randomUUID();
    if (!(await this.operations.take(id, operation, HELD_MS))) return null;
    const keeping = setInterval(() => {
      this.operations
        .keep(id, operation, HELD_MS)
        .catch((error: unknown) =>
          this.log.warn({ error, plugin: id }, 'an operation on a plugin may be taken over: it could not be kept'),
        );
    }, KEPT_EVERY_MS);
    try {
      return { result: await work({ installation: await this.found(id), operation }) };
    } finally {
      clearInterval(keeping);
      await this.operations.release(id, operation);
    }
  }

  private async found(id: string): Promise<Installation> {
    const installation = await this.plugins.find(id);
    if (installation === undefined) throw fault(pluginRegistry.getPlugin, 'PLUGIN_UNKNOWN');
    return installation;
  }
}
