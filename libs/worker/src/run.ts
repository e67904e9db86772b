import type { z } from 'zod';
import { type ContentBlock, type Fault, type RunJob, type Usage } from '@ambit/contracts';
import type { AttemptKey, CallResult, IntendedCall, Platform, TapeMessage, TapeView } from './platform.js';
import type { SnapshotView } from './snapshot.js';

/** What the model said in one turn. `raw` keeps the provider's blocks untouched and comes back in `messages`. */
export interface Said {
  readonly content: readonly ContentBlock[];
  readonly calls?: readonly IntendedCall[];
  readonly stop?: string | null;
  readonly raw?: unknown;
  readonly usage?: z.input<typeof Usage> | null;
}

/** One sampling of the model: the messages to give it, and where to put what it said. */
export interface Turn {
  readonly step: number;
  readonly messages: readonly TapeMessage[];
  /** Stores it on the tape, then executes its calls as one batch; gives the results in call order. */
  say(said: Said): Promise<readonly CallResult[]>;
}

/** Does something during which a run only waits for other runs. */
export type Waits = <T>(wait: () => Promise<T>) => Promise<T>;

/** The tool whose calls last as long as the runs that they start. */
const SUBAGENT_TOOL = 'subagent_orchestrator';

export type End = 'completed' | 'waiting' | 'failed' | 'cancelled';

/** A run as a worker's handler sees it. */
export class Run {
  /** How the run ended, once `turns()` is through. */
  end: End | undefined;
  private key: AttemptKey;

  constructor(
    private readonly platform: Platform,
    private readonly start: {
      readonly job: RunJob;
      readonly key: AttemptKey;
      readonly tape: TapeView;
      readonly snapshot: SnapshotView;
      readonly attempt: number;
      readonly waits?: Waits | undefined;
    },
    /** Aborted on cancel, on a lost lease and at shutdown; hand it to the model's client. */
    readonly signal: AbortSignal,
  ) {
    this.key = start.key;
    this.snapshot = start.snapshot;
  }

  /** The closed snapshot of this run, verified against its fingerprint. */
  snapshot: SnapshotView;
  get runId(): string {
    return this.key.runId;
  }
  get originRunId(): string {
    return this.key.originRunId;
  }
  get sessionId(): string {
    return this.key.sessionId;
  }
  get fingerprint(): string {
    return this.key.fingerprint;
  }
  get attempt(): number {
    return this.start.attempt;
  }
  get model(): string {
    return this.start.job.model;
  }
  get instructions(): string {
    return this.start.job.instructions;
  }
  get limits(): RunJob['limits'] {
    return this.start.job.limits;
  }
  get workspaceId(): string | null {
    return this.start.job.workspaceId;
  }

  /** Text for whoever listens now; never stored. */
  output(text: string): void {
    this.platform.output(this.key, text);
  }

  /** After a skill activation: a new snapshot, valid from the next step. */
  async refresh(): Promise<SnapshotView> {
    const { fingerprint } = await this.platform.refresh(this.key);
    this.key = { ...this.key, fingerprint };
    this.snapshot = await this.platform.snapshot(this.key);
    return this.snapshot;
  }

  /** Goes on where a resumed or redelivered run stopped; ends when the run is done, waits, or is cancelled. */
  async *turns(): AsyncGenerator<Turn, void, undefined> {
    let tape = this.start.tape;
    for (;;) {
      if (this.signal.aborted) return this.finishAs('cancelled');
      if (tape.openCalls.length > 0) {
        const results = await this.execute(tape.step, tape.openCalls);
        if (results.some((result) => result.status === 'waiting')) return this.finishAs('waiting');
        tape = await this.platform.tape(this.key);
        continue;
      }
      const turn = new SayableTurn(tape, (said) => this.say(tape.step, said));
      yield turn;
      if (turn.outcome === undefined) return this.finishAs('completed');
      if (turn.outcome.calls === 0) return this.finishAs('completed');
      if (turn.outcome.waiting) return this.finishAs('waiting');
      tape = await this.platform.tape(this.key);
    }
  }

  private finishAs(end: End): void {
    this.end = end;
  }

  private async say(step: number, said: Said): Promise<readonly CallResult[]> {
    const calls = [...(said.calls ?? [])];
    await this.platform.step(this.key, {
      step,
      role: 'assistant',
      content: [...said.content],
      calls,
      stop: said.stop ?? null,
      usage: said.usage ?? null,
      ...(said.raw === undefined ? {} : { raw: said.raw }),
    });
    return calls.length === 0 ? [] : this.execute(step, calls);
  }

  private execute(step: number, calls: readonly IntendedCall[]): Promise<readonly CallResult[]> {
    const { waits } = this.start;
    const work = (): Promise<readonly CallResult[]> => this.executed(step, calls);
    return waits !== undefined && calls.some(({ name }) => name === SUBAGENT_TOOL) ? waits(work) : work();
  }

  /** `running` means that the request's time was up, not the call's: the same batch is sent again and attaches. */
  private async executed(step: number, calls: readonly IntendedCall[]): Promise<readonly CallResult[]> {
    for (;;) {
      const results = await this.platform.execute(this.key, { step, calls, signal: this.signal });
      if (this.signal.aborted || !results.some((result) => result.status === 'running')) return results;
    }
  }
}

class SayableTurn implements Turn {
  outcome: { readonly calls: number; readonly waiting: boolean } | undefined;
  constructor(
    private readonly tape: TapeView,
    private readonly speak: (said: Said) => Promise<readonly CallResult[]>,
  ) {}
  get step(): number {
    return this.tape.step;
  }
  get messages(): readonly TapeMessage[] {
    return this.tape.messages;
  }
  async say(said: Said): Promise<readonly CallResult[]> {
    if (this.outcome !== undefined) throw new Error('a turn is said once; the next turn comes from turns()');
    this.outcome = { calls: said.calls?.length ?? 0, waiting: false };
    const results = await this.speak(said);
    this.outcome = { calls: said.calls?.length ?? 0, waiting: results.some((result) => result.status === 'waiting') };
    return results;
  }
}

/** Faults that say that the attempt is over and the job needs no more of this worker. */
export function endsAttempt(fault: Fault): boolean {
  return (
    fault.code === 'TURN_ENDED' ||
    fault.code === 'STALE_INSTANCE' ||
    fault.code === 'TOOL_NOT_IN_SNAPSHOT' ||
    fault.code === 'AGENT_DISABLED'
  );
}
