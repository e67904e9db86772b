import { Bus } from '@ambit/bus';
import { Fault, mcpBroker, sessionService, type Input, type Output, type Principal, type Via } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';

type Answer = Input<typeof mcpBroker.finishAuthorization>;
interface Who {
  readonly principal?: Principal;
  readonly actor?: Principal;
  readonly via?: Via;
  readonly signal?: AbortSignal;
}

/** Finishes sign-ins, and lets the calls go on that waited for them. */
@Injectable()
export class SignIns {
  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  async finish(answer: Answer, who: Who): Promise<Output<typeof mcpBroker.finishAuthorization>> {
    const done = await this.bus.call(mcpBroker.finishAuthorization, answer, who);
    if (done.interactionId !== null) await this.goOn(done.interactionId);
    return done;
  }

  /** That the principal signed in is its yes. Where an earlier decision stands before it, the principal says so once more. */
  private async goOn(id: string): Promise<void> {
    try {
      const { principal } = await this.bus.call(sessionService.getInteraction, { id });
      await this.bus.call(
        sessionService.decideInteraction,
        { id, decision: 'allow', reason: 'signed in', by: principal },
        { principal, actor: principal, via: { kind: 'system', id: 'sign-in' } },
      );
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      this.log.info(
        { interactionId: id, code: error.code },
        'a sign-in is finished, and the call that waited for it was not decided with it',
      );
    }
  }
}
