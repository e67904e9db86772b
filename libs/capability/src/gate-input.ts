import type { PermissionMode, PlatformCode, Policy, Question, RefusalCode, RunStatus, Target, ToolEffect } from '@ambit/contracts';
import type { AskTerms, Reviewer } from './permission.js';
import type { Access, SnapshotTool } from './snapshot.js';
import type { SessionKind } from './subagents.js';

/** One policy that bears on a run, as it stands now. */
export interface AuthorityLink {
  readonly agentId: string;
  readonly version: number;
  readonly enabled: boolean;
  /** Null: it could not be read, which allows nothing. */
  readonly policy: Policy | null;
}

/** What session-service says of a run, fetched with its first call and after every move of its state. */
export interface RunAuthority {
  readonly runId: string;
  readonly sessionId: string;
  readonly agentId: string;
  readonly agentKind: 'sdk' | 'acp';
  readonly sessionKind: SessionKind;
  readonly principal: string;
  /** The fingerprint this run was given, which its session's mapping must also name. */
  readonly fingerprint: string;
  readonly status: RunStatus;
  /** `superseded`: it was this run's token once; `unknown`: it never was. A deferred call carries none and says `current`. */
  readonly token: 'current' | 'superseded' | 'unknown';
  /** The session's mode, or the narrowest of it and its ancestors' sessions'. */
  readonly mode: PermissionMode;
  /** The agent's own first, then each ancestor's. */
  readonly chain: readonly AuthorityLink[];
  /** The fence of each owner when the mapping was made. */
  readonly fences: Readonly<Record<string, number>>;
  /** Owners that session-service itself saw taken away since the mapping. */
  readonly revokedOwners?: readonly string[];
  /** Agents that exist and are enabled now; only the delegation gate reads it. */
  readonly knownAgents: readonly string[];
}

/** What stands behind the tool's name at this moment, read from its owner's replicated state. */
export interface TargetFacts {
  /** Null: nothing does any more. */
  readonly target: Target | null;
  readonly effect: ToolEffect;
  readonly access: Access;
  readonly requiresConfirmation: boolean;
  readonly pluginVerdict: 'allow' | 'ask' | 'deny' | null;
  /** Of a server's tool. */
  readonly server: { readonly id: string; readonly slug: string } | null;
  /** The owner's fence now. Above the mapping's, something of this owner was taken away since. */
  readonly ownerFence: number;
  /** The owner's fence when these facts were read; facts older than the fence prove nothing. */
  readonly readAtFence: number;
  /** Until when the owner is known to stand (milliseconds); null where an owner needs no lease. */
  readonly ownerLeaseUntil: number | null;
}

/** What `tool.prepare` found out of a file or command tool, without any effect. */
export interface PreparedFacts {
  readonly outsideWorkspace: boolean;
  readonly protectedPath: boolean;
  readonly command: string | null;
  /** Canonical, as the worker spelled them. */
  readonly paths?: readonly string[];
  /** The hash of all that was prepared: an approval is of that and of nothing else. */
  readonly digest?: string;
  /** Why the worker says that this call cannot be carried out. */
  readonly problem?: { readonly code: GateCode; readonly data: unknown };
}

/** One approval. It fits one operation, target, arguments and state of the policies, for two minutes from the decision. */
export interface Grant {
  readonly operationId: string;
  readonly targetHash: string;
  readonly argumentsHash: string;
  readonly policyStamp: string;
  readonly decidedAt: number;
}

/** One counter that this call would add to: `used` counts what was dispatched in the window so far. */
export interface UsageWindow {
  readonly name: string;
  readonly used: number;
  readonly limit: number;
  readonly retryAfterMs: number;
}

export interface GateInput {
  /** The agent in the subject that the call came on: never what a body says. */
  readonly agentId: string;
  /** The session the caller speaks of, where it names one. */
  readonly sessionId?: string;
  /** The fingerprint that the call was made under. */
  readonly fingerprint: string;
  /** A deferred call runs at its approval, for a run that may be suspended. @default 'batch' */
  readonly purpose?: 'batch' | 'deferred';
  /** The abort fact of this call, or the cancel of its run, was seen. */
  readonly aborted: boolean;
  readonly run: RunAuthority | null;
  readonly call: { readonly operationId: string; readonly callId: string; readonly name: string; readonly arguments: string };
  /** The tool of that name in the run's snapshot, found through this session's mapping; null where there is none. */
  readonly tool: SnapshotTool | null;
  readonly current: TargetFacts | null;
  readonly prepared?: PreparedFacts;
  readonly grant?: Grant;
  readonly usage: { readonly callsInRun: number; readonly windows: readonly UsageWindow[] };
  /** Milliseconds, of the clock that grants and leases are written with. */
  readonly now: number;
  /** Problems of the arguments against the tool's input schema; none = they fit. */
  readonly validate: (tool: SnapshotTool, input: Readonly<Record<string, unknown>>) => readonly string[];
  /** @default the rule-based one */
  readonly review?: Reviewer;
}

export type GateCode = RefusalCode | PlatformCode;

export interface Refusal {
  readonly decision: 'refuse';
  readonly code: GateCode;
  readonly data?: unknown;
  /** For the audit record and the operator; never sent to the caller. */
  readonly detail?: string;
}
export interface Asks {
  readonly decision: 'ask';
  readonly rule: string;
  readonly approvers: readonly string[];
  readonly terms: readonly AskTerms[];
  readonly expiresMs: number;
}
export interface AsksQuestion {
  readonly decision: 'question';
  readonly question: Question;
}

/** What one gate says when it does not let a call pass. */
export type Stop = Refusal | Asks | AsksQuestion;

/** What all gates say together. `gate` names the one that stopped the call. */
export type Decision =
  | {
      readonly decision: 'allow';
      readonly arguments: Readonly<Record<string, unknown>>;
      readonly rule: string;
      readonly grantUsed: boolean;
    }
  | (Stop & { readonly gate: string });
