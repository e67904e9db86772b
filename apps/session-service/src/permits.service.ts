import { Bus, type Call } from '@ambit/bus';
import { BoundedMap, type Subject } from '@ambit/capability';
import { Fault, permitChecker, type Output, type PermitSubject } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import { answerKey, permitsAsked, WHOLE_SUBJECT } from './domain/permits.js';
import type { Seen, Whose } from './domain/world.js';

const KEPT = 2_000;
/** Nobody is waited for again within that time after nobody was there. */
const NOBODY_MS = 2_000;

type Answer = Output<typeof permitChecker.checkPermits>;
interface Kept {
  readonly held: readonly string[];
  readonly until: number;
}

/** Asks the checker of a message's platform what its sender may do there, where a capability wants to know. Whatever goes wrong, the sender may not. */
@Injectable()
export class Permits {
  /** By adapter and permits: what its checker said that it reads. */
  readonly #reads = new BoundedMap<string, readonly (keyof PermitSubject)[]>(KEPT);
  readonly #kept = new BoundedMap<string, Kept>(KEPT);
  /** By adapter: until when it is taken to have no checker. */
  readonly #nobody = new BoundedMap<string, number>(KEPT);

  constructor(
    private readonly bus: Bus,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  /** The subject with the permits of its platform that it has now. */
  async of(whose: Whose, seen: Seen, within?: Call): Promise<Subject | null> {
    const { subject } = whose;
    if (subject === null) return null;
    const permits = permitsAsked(whose, seen, subject.adapter);
    return permits.length === 0 ? subject : { ...subject, platformPermits: await this.#held(subject, permits, within) };
  }

  async #held(subject: Subject, permits: readonly string[], within: Call | undefined): Promise<readonly string[]> {
    const asked = answerKey({ adapter: subject.adapter, permits });
    const reads = this.#reads.get(asked) ?? WHOLE_SUBJECT;
    const kept = this.#kept.get(answerKey({ adapter: subject.adapter, permits, subject, reads }));
    if (kept !== undefined && performance.now() < kept.until) return kept.held;
    if (performance.now() < (this.#nobody.get(subject.adapter) ?? 0)) return [];
    try {
      const answer = await this.#ask(subject, permits, within);
      this.#keep(asked, { subject, permits, answer });
      return permits.filter((permit) => answer.held.includes(permit));
    } catch (error) {
      if (error instanceof Fault && error.code === 'UNAVAILABLE') this.#nobody.set(subject.adapter, performance.now() + NOBODY_MS);
      this.log.warn({ error, adapter: subject.adapter }, 'no checker said which permits of its platform a sender has; it has none');
      return [];
    }
  }

  #ask({ adapter, scene, sceneId, userId, roles }: Subject, permits: readonly string[], within: Call | undefined): Promise<Answer> {
    const subject = { scene, sceneId, userId, roles: [...roles] };
    return this.bus.call(
      permitChecker.checkPermits,
      { subject, permits: [...permits] },
      { keys: { adapter }, ...(within === undefined ? {} : { within }) },
    );
  }

  /** A verdict is another subject's only where the checker said what it looked at. */
  #keep(
    asked: string,
    { subject, permits, answer }: { readonly subject: Subject; readonly permits: readonly string[]; readonly answer: Answer },
  ): void {
    const reads = answer.readsOnly ?? WHOLE_SUBJECT;
    this.#reads.set(asked, reads);
    if (answer.keepMs === 0) return;
    const held = permits.filter((permit) => answer.held.includes(permit));
    this.#kept.set(answerKey({ adapter: subject.adapter, permits, subject, reads }), { held, until: performance.now() + answer.keepMs });
  }
}
