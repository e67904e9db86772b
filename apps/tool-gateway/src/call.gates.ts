import {
  actionHash,
  argumentsHash,
  evaluateGates,
  GATES,
  reviewerOf,
  wantsReview,
  type Decision,
  type GateInput,
  type Grant,
  type PreparedFacts,
  type Reviewer,
  type SnapshotTool,
} from '@ambit/capability';
import type { Review } from '@ambit/contracts';
import { CONFIG } from '@ambit/service';
import { Injectable, Inject } from '@nestjs/common';
import type { HeldAuthority } from './authority.cache.js';
import type { ToolGatewayConfig } from './config.js';
import { CallWindows } from './domain/call-window.js';
import type { Operation } from './domain/operation.js';
import { runAuthorityOf, tokenStanding } from './domain/run-authority.js';
import { SchemaValidators } from './schema.validators.js';
import type { HeldSnapshot } from './snapshot.cache.js';
import { TargetFactsSource } from './target.facts.js';

/** Gates that are about the run and not about one call: what they refuse, they refuse for the whole batch. */
const RUN_GATES: ReadonlySet<string> = new Set(
  GATES.filter((gate) => gate.step === 1 && gate.name !== 'not-aborted').map((gate) => gate.name),
);
const CALL_GATES: ReadonlySet<string> = new Set(GATES.filter((gate) => !RUN_GATES.has(gate.name)).map((gate) => gate.name));

/** Who asks for a call: a worker with its run's token, the approval of a call that waited, or an MCP client through the edge. */
export interface Caller {
  /** The agent in the subject. */
  readonly agentId: string;
  readonly sessionId: string;
  readonly fingerprint: string;
  /** sha256 of the run token. Undefined: an approved call or one of the edge, which carry none. */
  readonly tokenHash: string | undefined;
  /** It comes from the edge, which has held the client's own token against the run. */
  readonly isEdge?: boolean;
}

export interface Question {
  readonly caller: Caller;
  readonly operation: Operation;
  readonly held: HeldAuthority;
  readonly snapshot: HeldSnapshot;
  readonly isAborted: boolean;
  readonly prepared?: PreparedFacts | undefined;
  readonly grant?: Grant | undefined;
  /** What a reviewer proposed; null where it was asked in vain. */
  readonly review?: Review | null | undefined;
}

/** A call about which a reviewer is to be asked. */
export interface Reviewable {
  readonly action: string;
  readonly facts: Parameters<Reviewer>[0];
}

const NOTHING = { operationId: '', callId: '', name: '', arguments: '{}' };

/** Asks the gates, with everything they need out of memory. */
@Injectable()
export class CallGates {
  readonly #windows = new CallWindows();

  constructor(
    @Inject(TargetFactsSource) private readonly facts: TargetFactsSource,
    @Inject(SchemaValidators) private readonly validators: SchemaValidators,
    @Inject(CONFIG) private readonly config: ToolGatewayConfig,
  ) {}

  /** Whether the run itself lets calls of this caller through. */
  run(caller: Caller, held: HeldAuthority | undefined): Decision {
    const standing = held === undefined ? 'unknown' : standingOf(caller, held);
    const input: GateInput = {
      agentId: caller.agentId,
      sessionId: caller.sessionId,
      fingerprint: caller.fingerprint,
      purpose: purposeOf(caller),
      aborted: false,
      run: held === undefined ? null : runAuthorityOf(held.authority, standing, ''),
      call: NOTHING,
      tool: null,
      current: null,
      usage: { callsInRun: 0, windows: [] },
      now: 0,
      validate: () => [],
    };
    return evaluateGates(input, { off: CALL_GATES });
  }

  /** What all gates say of one call. */
  call(question: Question): Decision {
    if (this.config.AMBIT_REVIEWER !== 'bus') return this.#evaluate(question, undefined);
    const { operation, snapshot, review } = question;
    return this.#evaluate(question, (facts) => reviewerOf(review, () => actionOf(operation, snapshot, facts.arguments))(facts));
  }

  /** The call as its reviewer has to know it, where the gates want a review of it. */
  reviewable(question: Question): Reviewable | undefined {
    let found: Reviewable | undefined;
    const { operation, snapshot } = question;
    const decision = this.#evaluate(question, (facts) => {
      if (wantsReview(facts)) found = { action: actionOf(operation, snapshot, facts.arguments), facts };
      return null;
    });
    return decision.decision === 'ask' ? found : undefined;
  }

  #evaluate({ caller, operation, held, snapshot, isAborted, prepared, grant }: Question, review: Reviewer | undefined): Decision {
    const { authority } = held;
    const tool = snapshot.tools.get(operation.call.name) ?? null;
    const now = Date.now();
    return evaluateGates({
      agentId: caller.agentId,
      sessionId: caller.sessionId,
      fingerprint: caller.fingerprint,
      purpose: purposeOf(caller),
      aborted: isAborted,
      run: runAuthorityOf(authority, standingOf(caller, held), tool?.owner ?? ''),
      call: { operationId: operation.operationId, ...operation.call },
      tool,
      current: tool === null ? null : this.facts.of(tool, authority, snapshot),
      usage: { callsInRun: operation.callsInRun, windows: [this.#windows.usage(authority.agentId, perMinute(held), now)] },
      now,
      validate: this.validators.problems,
      ...(prepared === undefined ? {} : { prepared }),
      ...(grant === undefined ? {} : { grant }),
      ...(review === undefined ? {} : { review }),
    });
  }

  /** Counts a call that is about to be dispatched. */
  take(agentId: string): void {
    this.#windows.take(agentId, Date.now());
  }
  /** Uncounts one that was not. */
  refund(agentId: string): void {
    this.#windows.refund(agentId, Date.now());
  }
}

/** Tells whether a gate's word is about the run, so that it holds for every call of a batch. */
export function isRunGate(gate: string): boolean {
  return RUN_GATES.has(gate);
}

/** Tells whether a call has to be prepared by its worker before the gates can be asked. */
export function needsPreparation(tool: SnapshotTool | undefined): boolean {
  return tool?.access === 'command' ? tool.target.kind !== 'mcp' : tool?.access === 'file' && tool.target.kind === 'worker';
}

const actionOf = (
  { operationId, sessionId, call }: Operation,
  { tools }: HeldSnapshot,
  input: Readonly<Record<string, unknown>>,
): string => {
  const tool = tools.get(call.name);
  // Without a tool there is nothing to review: the gates before have refused the call.
  return tool === undefined
    ? ''
    : actionHash({ operationId, sessionId, tool: call.name, target: tool.target, argumentsHash: argumentsHash(input) });
};

const purposeOf = ({ tokenHash, isEdge }: Caller): 'batch' | 'deferred' =>
  tokenHash === undefined && isEdge !== true ? 'deferred' : 'batch';

const standingOf = (caller: Caller, held: HeldAuthority): 'current' | 'superseded' | 'unknown' =>
  caller.tokenHash === undefined ? 'current' : tokenStanding(held.authority.tokens, caller.tokenHash);

const perMinute = ({ authority }: HeldAuthority): number =>
  Math.min(...[authority, ...authority.ancestors].map(({ policy }) => policy?.limits.callsPerMinute ?? 0));
