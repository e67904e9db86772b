import { Bus } from '@ambit/bus';
import { Fault, mcpBroker, sessionService, skillStore, type Rpc } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import { Fences } from './fences.js';
import { PluginRepository, type Installation } from './plugin.repository.js';

/** Longer than any instance lease (5 s): whoever is silent so long serves nothing of the owner any more. */
const SILENCE_MS = 6_000;
const RETRY_MS = 500;

/** Takes a plugin away everywhere: fence first, then every holder of something of it; answers after their acknowledgements. */
@Injectable()
export class RevocationService {
  constructor(
    private readonly bus: Bus,
    private readonly fences: Fences,
    private readonly repository: PluginRepository,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  /** False where not everybody has acknowledged it: it is owed then. */
  async revoke(installation: Installation): Promise<boolean> {
    const { id, fence, epoch } = installation;
    const owner = `plugin:${id}`;
    await this.fences.publish(id, { epoch, fence });
    await this.fences.drop(id);
    const acknowledged = await Promise.all([
      this.tell(sessionService.revokeOwner, () => this.bus.call(sessionService.revokeOwner, { owner, service: 'plugin-registry', fence })),
      this.tell(mcpBroker.revokeOwner, () => this.bus.call(mcpBroker.revokeOwner, { owner, fence, remove: true })),
      this.tell(skillStore.revokeOwner, () => this.bus.call(skillStore.revokeOwner, { owner, fence })),
    ]);
    if (!acknowledged.every(Boolean)) return false;
    await this.repository.acknowledgeRevocation(id, fence);
    return true;
  }

  /** Asks again until it is acknowledged, or until silence has lasted longer than what the silent one could hold. */
  private async tell(contract: Rpc, ask: () => Promise<unknown>): Promise<boolean> {
    const until = performance.now() + SILENCE_MS;
    for (;;) {
      try {
        await ask();
        return true;
      } catch (error) {
        if (!(error instanceof Fault)) throw error;
        if (performance.now() > until) {
          this.log.warn(
            { subject: contract.subject, code: error.code },
            'a revocation was not acknowledged; it is tried again until it is',
          );
          return false;
        }
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }
}
