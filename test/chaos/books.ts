import type { OutcomeStatus, RunStatus } from '@ambit/contracts';
import type { z } from 'zod';
import type { Victim } from './plan.js';

/** Moments are milliseconds since 1970, by one machine's clock. */
export interface Kill {
  readonly victim: Victim;
  readonly label: string;
  readonly at: number;
}

export interface End {
  readonly status: z.output<typeof OutcomeStatus>;
  readonly code: string | null;
  readonly message: string | null;
  readonly at: number;
}

/** All that the journal has said of one operation, however often. */
export interface Operation {
  readonly operationId: string;
  readonly tool: string;
  readonly claims: readonly number[];
  readonly ends: readonly End[];
}

/** A call as the model made it, and what its tape says of it. */
export interface TapeCall {
  readonly operationId: string;
  readonly runId: string;
  /** What its effect is counted under. */
  readonly name: string;
  readonly results: readonly string[];
}

export interface EndedRun {
  readonly id: string;
  readonly status: z.output<typeof RunStatus>;
  /** How often a worker took it up. */
  readonly attempts: number;
  readonly tookMs: number;
}

/** Everything that was written down while processes were killed. */
export interface Books {
  readonly kills: readonly Kill[];
  /** The load before the first kill: what throughput has to come back to. */
  readonly steady: { readonly from: number; readonly to: number };
  /** Calls a second that the load asks for. */
  readonly offered: number;
  /** Until when load was offered. */
  readonly loadedUntil: number;
  readonly operations: readonly Operation[];
  readonly calls: readonly TapeCall[];
  /** By name: how often the counting servers did it. */
  readonly effects: ReadonlyMap<string, number>;
  /** Messages that were taken. */
  readonly messages: number;
  /** Calls that each of them asks for. */
  readonly callsOfRun: number;
  /** Messages that nobody took, and why. */
  readonly untaken: readonly string[];
  readonly runs: readonly EndedRun[];
  /** Processes that nobody looks after any more. */
  readonly orphans: readonly string[];
  /** Processes that ended though nobody had killed them. */
  readonly fallen: readonly string[];
}

/** What a run of the harness has to have been to mean something. */
export interface Demands {
  readonly leastEach: number;
  readonly leastMs: number;
}
