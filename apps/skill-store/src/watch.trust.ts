import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';

/**
 * Whether the system tells of what changes. It does not where folders cannot be watched, and cannot be taken at its word any more
 * once something was found changed that it had told nobody of; a network folder never tells at all.
 */
@Injectable()
export class WatchTrust {
  /** `silent` until something is told of again, `failed` until every folder could be watched. */
  private doubt: 'none' | 'failed' | 'silent' = 'none';
  private failures = 0;
  private readonly suspects = new Set<string>();

  constructor(@Inject(LOG) private readonly log: Logger) {}

  get isTold(): boolean {
    return this.doubt === 'none';
  }

  /** A look at everything begins, which watches what it comes by. */
  begin(): void {
    this.failures = 0;
  }

  end(): void {
    if (this.doubt === 'failed' && this.failures === 0) this.#regain();
  }

  /** A scope was found changed and nothing of it was told; its telling may still be under way. */
  suspect(scope: string): void {
    this.suspects.add(scope);
  }

  told(scope: string): void {
    this.suspects.delete(scope);
    if (this.doubt === 'silent' && this.failures === 0) this.#regain();
  }

  failed(error: unknown): void {
    this.failures += 1;
    if (this.doubt !== 'none') return;
    this.doubt = 'failed';
    this.log.warn({ error }, 'the skills folder cannot be watched; it is looked at regularly');
  }

  /** Whether the watching is to begin anew, since what was suspected a while ago was never told of. */
  isLost(): boolean {
    if (this.suspects.size === 0) return false;
    this.suspects.clear();
    // Where some folders cannot be watched, that is reason enough, and others may be watched in vain all the same.
    if (this.failures === 0 && this.doubt !== 'silent') {
      this.doubt = 'silent';
      this.log.warn('the skills folder changed and nobody told; it is looked at regularly');
    }
    return true;
  }

  #regain(): void {
    this.doubt = 'none';
    this.log.info('changes of the skills folder are told of again');
  }
}
