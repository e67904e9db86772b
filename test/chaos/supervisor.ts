/** A process that somebody starts again, as Kubernetes would. */
export interface Member {
  readonly label: string;
  /** Answers when it serves. */
  start(): Promise<void>;
  /** SIGKILL; answers when it is gone. */
  kill(): Promise<unknown>;
  /** Settles when the process that runs now has ended. */
  ended(): Promise<unknown>;
}

const AGAIN_MS = 500;

/** Starts its members again whenever they end, and notes those that ended though nobody killed them. */
export class Supervisor {
  readonly #up = new Set<Member>();
  readonly #killed = new Set<Member>();
  readonly #starting = new Set<Promise<boolean>>();
  readonly fallen: string[] = [];
  readonly restartMs: number[] = [];
  #isClosing = false;

  constructor(private readonly say: (line: string) => void) {}

  /** Looks after a member that runs already. */
  follow(member: Member): void {
    this.#up.add(member);
    void this.#follow(member);
  }

  isUp(member: Member): boolean {
    return this.#up.has(member);
  }

  async kill(member: Member): Promise<void> {
    this.#killed.add(member);
    this.#up.delete(member);
    await member.kill();
  }

  /** Starts nothing any more; what was being started is up then, or is not going to be. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await Promise.all(this.#starting);
  }

  async #follow(member: Member): Promise<void> {
    for (;;) {
      await member.ended();
      this.#up.delete(member);
      if (this.#isClosing) return;
      if (!this.#killed.delete(member)) this.fallen.push(member.label);
      const began = performance.now();
      const starting = this.#start(member);
      this.#starting.add(starting);
      const isUp = await starting;
      this.#starting.delete(starting);
      if (!isUp) return;
      this.restartMs.push(performance.now() - began);
      this.#up.add(member);
    }
  }

  async #start(member: Member): Promise<boolean> {
    while (!this.#isClosing) {
      try {
        await member.start();
        return true;
      } catch (error) {
        this.say(
          `${member.label} did not start, trying again: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)}`,
        );
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      }
    }
    return false;
  }
}
