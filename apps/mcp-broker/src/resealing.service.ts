import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { ResealingRepository } from './resealing.repository.js';

/** After a key was replaced: what it sealed is sealed with the new one, so that the old one can be thrown away. */
@Injectable()
export class Resealing implements OnApplicationBootstrap {
  constructor(
    @Inject(ResealingRepository) private readonly repository: ResealingRepository,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  /** Not waited for: until it is done the old key opens what it sealed. */
  onApplicationBootstrap(): void {
    this.repository.reseal().then(
      (made) => {
        if (made > 0) this.log.info({ envelopes: made }, 'what older keys sealed is sealed anew; they are not needed any more');
      },
      (error: unknown) => this.log.error({ error }, 'what older keys sealed could not be sealed anew; the next start tries again'),
    );
  }
}
