import { setTimeout as delay } from 'node:timers/promises';
import type { z } from 'zod';
import { type ContentBlock, type Fault, type RunJob, type Usage } from '@ambit/contracts';
import type { AttemptKey, CallResult, IntendedCall, Permission, Platform, TapeMessage, TapeView } from './platform.js';
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
  /** Stores, before something is done that cannot be taken back, that it was begun; `say` follows. Whoever has the run after a crash finds `raw` on the tape. */
  mark(raw: unknown): Promise<void>;
}

/** Does something during which a run only waits for other runs. */
export type Waits = <T>(wait: () => Promise<T>) => Promise<T>;

/** The tool whose calls last as long as the runs that they start. */
const SUBAGENT_TOOL = 'subagent_orchestrator';

/** Between two looks at a question that a person has not answered. */
const ASK_AGAIN_MS = 500;

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
      const turn = new SayableTurn(tape, {
        say: (step, said) => this.say(step, said),
        mark: (step, raw) => this.store(step, { content: [], raw }),
      });
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

  /**
   * Has a person asked for leave to do something, and waits for the answer: `cancelled` where nobody gave one in time, or nobody waits any more. In full
   * access nobody is asked.
   */
  async permission(question: Omit<Permission, 'withdrawn'>, signal: AbortSignal): Promise<'allowed' | 'denied' | 'cancelled'> {
    for (;;) {
      const status = await this.platform.permission(this.key, { ...question, withdrawn: signal.aborted });
      if (status !== 'pending') return status === 'allowed' || status === 'denied' ? status : 'cancelled';
      await delay(ASK_AGAIN_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  /** What opens this run's tools at the edge, for the program of an ACP agent. */
  async edgeToken(): Promise<string> {
    return (await this.platform.edge(this.key)).token;
  }

  private async say(step: number, said: Said): Promise<readonly CallResult[]> {
    const calls = [...(said.calls ?? [])];
    await this.store(step, said);
    return calls.length === 0 ? [] : this.execute(step, calls);
  }

  private async store(step: number, said: Said): Promise<void> {
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
  private marks = 0;
  constructor(
    private readonly tape: TapeView,
    private readonly store: {
      readonly say: (step: number, said: Said) => Promise<readonly CallResult[]>;
      readonly mark: (step: number, raw: unknown) => Promise<void>;
    },
  ) {}
  get step(): number {
    return this.tape.step + this.marks;
  }
  get messages(): readonly TapeMessage[] {
    return this.tape.messages;
  }
  async mark(raw: unknown): Promise<void> {
    await this.store.mark(this.step, raw);
    this.marks += 1;
  }
  async say(said: Said): Promise<readonly CallResult[]> {
    if (this.outcome !== undefined) throw new Error('a turn is said once; the next turn comes from turns()');
    this.outcome = { calls: said.calls?.length ?? 0, waiting: false };
    const results = await this.store.say(this.step, said);
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
