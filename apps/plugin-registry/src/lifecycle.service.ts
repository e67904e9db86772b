import { fault, pluginRegistry, type Fault } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import { ActivationService, StepFailed } from './activation.service.js';
import { Availability } from './availability.js';
import { nextStep, restingState } from './domain/standing.js';
import { Fences } from './fences.js';
import type { Held } from './operations.js';
import { byItself, changeOf, type Cause } from './plugin.change.js';
import { NOTHING, PluginRepository, type Installation, type Package, type PluginChange } from './plugin.repository.js';
import { RevocationService } from './revocation.service.js';

/** Brings a plugin in and takes it away, whole, by whoever holds it. */
@Injectable()
export class LifecycleService {
  constructor(
    private readonly repository: PluginRepository,
    private readonly activation: ActivationService,
    private readonly availability: Availability,
    private readonly revocation: RevocationService,
    private readonly fences: Fences,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  /**
   * All or nothing. That it was begun is written down first, so that what a crash leaves behind is taken away by whoever comes next; what was
   * handed out before a failure is revoked before the failure is told. Nothing new is handed out while something old may still be there.
   */
  async activate(held: Held, found: Package, how: { readonly cause: Cause; readonly tries: number }): Promise<Installation> {
    const { cause, tries } = how;
    const problem = await this.availability.problemOf(found, held.installation);
    if (problem !== null) return this.rest(held, { cause, wanted: 'enabled', problem });
    if (!(await this.settle(held.installation))) throw failed('revocation', 'what it contributed before is not taken away everywhere yet');
    const begun = await this.repository.begin(held, tries, cause.startedAt);
    await this.fences.publish(begun.id, begun);
    let enabled: Installation;
    try {
      const contributes = await this.activation.contribute(found, begun, cause.within);
      const done = { state: 'enabled', wanted: 'enabled', reason: null, contributes, unfinished: 0, quarantined: null, settles: true };
      enabled = await this.repository.update(changeOf('enabled', { cause, after: found.digest }), held, done);
    } catch (error) {
      throw await this.undo({ ...held, installation: begun }, error, cause);
    }
    await this.fences.publish(enabled.id, enabled);
    await this.fences.renew(enabled.id);
    return enabled;
  }

  /** Answers when nothing of it can be used any more, as far as anybody answers. */
  async takeAway(
    held: Held,
    how: {
      readonly cause: Cause;
      readonly action: PluginChange['action'];
      readonly state: 'disabled' | 'unavailable';
      readonly reason?: string;
      readonly wanted?: 'disabled';
      readonly unfinished?: number;
    },
  ): Promise<Installation> {
    const { cause, action, reason = null, ...rest } = how;
    const change = changeOf(action, { cause, before: held.installation.digest, reason });
    const taken = await this.repository.update(change, held, { ...rest, reason, contributes: NOTHING, takes: true });
    return (await this.revocation.revoke(taken)) ? { ...taken, revokedFence: taken.fence } : taken;
  }

  /** Whether nothing of it is owed to be taken away any more. */
  async settle(installation: Installation): Promise<boolean> {
    return installation.revokedFence >= installation.fence || this.revocation.revoke(installation);
  }

  /** Writes down how a plugin stands that contributes nothing. */
  async rest(
    held: Held,
    how: { readonly cause: Cause; readonly wanted: 'enabled' | 'disabled'; readonly problem: string | null },
  ): Promise<Installation> {
    const { installation } = held;
    const { cause, wanted, problem } = how;
    const isQuarantined = installation.quarantined === installation.digest;
    const state = restingState({ wanted, problem, isQuarantined });
    const reason = problem ?? (isQuarantined ? installation.reason : null);
    const change = changeOf(state, { cause, before: installation.digest, reason });
    return this.repository.update(change, held, { state, wanted, reason, unfinished: 0 });
  }

  /** Does what is to be done about a plugin without a word of a person. */
  async reconcile(held: Held, found: Package): Promise<void> {
    const { installation } = held;
    const { wanted, fence, revokedFence, unfinished, digest } = installation;
    const problem = await this.availability.problemOf(found, installation);
    const isQuarantined = installation.quarantined === digest;
    const cause = byItself(new Date());
    switch (nextStep({ state: installation.state, wanted, problem, isQuarantined, isOwed: revokedFence < fence, unfinished })) {
      case 'nothing':
        return;
      case 'settle':
        await this.revocation.revoke(installation);
        return;
      case 'take-away':
        await this.takeAway(held, { cause, action: 'unavailable', state: 'unavailable', ...(problem === null ? {} : { reason: problem }) });
        return;
      case 'rest':
        await this.rest(held, { cause, wanted: wanted === 'enabled' ? 'enabled' : 'disabled', problem });
        return;
      case 'quarantine': {
        const reason = 'switching it on was begun several times and never came to an end; it is not tried again by itself';
        const change = changeOf('unavailable', { cause, before: digest, reason });
        await this.repository.update(change, held, { state: 'unavailable', reason, quarantined: digest, unfinished: 0 });
        return;
      }
      case 'activate':
        await this.activate(held, found, { cause, tries: unfinished + 1 });
    }
  }

  /** Gives the failure that is to be told. */
  private async undo(held: Held, error: unknown, cause: Cause): Promise<unknown> {
    const { installation } = held;
    const reason = error instanceof StepFailed ? `${error.step}: ${error.reason}`.slice(0, 1_000) : 'an internal error';
    // A person who asks is told; what a person has chosen before, and cannot have now, is said to be unavailable.
    const state = installation.wanted === 'enabled' ? 'unavailable' : 'disabled';
    const isCertain = error instanceof StepFailed && error.isCertain;
    const quarantine = state === 'unavailable' && isCertain ? { quarantined: installation.digest } : {};
    this.log.warn(
      { plugin: installation.id, reason, ...(error instanceof StepFailed ? {} : { error }) },
      'a plugin could not be activated; what it contributed is taken away',
    );
    await this.takeAwayAgain(held, { cause, state, reason, ...quarantine });
    return error instanceof StepFailed ? failed(error.step, error.reason) : error;
  }

  private async takeAwayAgain(
    held: Held,
    {
      cause,
      ...update
    }: { readonly cause: Cause; readonly state: 'disabled' | 'unavailable'; readonly reason: string; readonly quarantined?: string },
  ): Promise<void> {
    const change = changeOf(update.state, { cause, before: held.installation.digest, reason: update.reason });
    await this.revocation.revoke(
      await this.repository.update(change, held, { ...update, contributes: NOTHING, unfinished: 0, takes: true }),
    );
  }
}

function failed(step: string, reason: string): Fault {
  return fault(pluginRegistry.enablePlugin, 'ACTIVATION_FAILED', { step, reason });
}
