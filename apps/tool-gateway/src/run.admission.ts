import { createHash } from 'node:crypto';
import { Fault, platformFault, refusals } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';
import { AuthorityCache, type HeldAuthority } from './authority.cache.js';
import { CallGates, type Caller } from './call.gates.js';

/** What a worker says of its run with every request. */
export interface RunClaims {
  readonly runId: string;
  readonly originRunId: string;
  readonly sessionId: string;
  readonly fingerprint: string;
  readonly token: string;
}

/** The caller of a request on an agent's subject. */
export function callerOf(agentId: string, { sessionId, fingerprint, token }: RunClaims): Caller {
  return { agentId, sessionId, fingerprint, tokenHash: createHash('sha256').update(token).digest('hex') };
}

/** Lets in requests whose run, session, fingerprint and token belong together and to the agent they come from. */
@Injectable()
export class RunAdmission {
  constructor(
    @Inject(AuthorityCache) private readonly authorities: AuthorityCache,
    @Inject(CallGates) private readonly gates: CallGates,
  ) {}

  /** The run's authority, or the fault. What memory refuses is asked of session-service once; `more` adds what else a request needs of it. */
  async admit<T>(
    caller: Caller,
    names: Pick<RunClaims, 'runId' | 'originRunId'>,
    more?: (held: HeldAuthority) => T | Fault,
  ): Promise<{ held: HeldAuthority; more: T | undefined } | Fault> {
    const remembered = this.authorities.held(names.runId);
    const first = remembered === undefined ? undefined : this.#judge(caller, names, { held: remembered, more });
    if (first !== undefined && !(first instanceof Fault)) return first;
    return this.#judge(caller, names, { held: await this.authorities.fetch(names.runId), more });
  }

  #judge<T>(
    caller: Caller,
    { originRunId }: Pick<RunClaims, 'originRunId'>,
    asked: { held: HeldAuthority | undefined; more: ((held: HeldAuthority) => T | Fault) | undefined },
  ): { held: HeldAuthority; more: T | undefined } | Fault {
    const { held, more } = asked;
    const decision = this.gates.run(caller, held);
    if (decision.decision === 'refuse') return runFault(decision.code);
    if (held === undefined) throw new Error('the gates let a run pass that is not there');
    // The origin is the authority's: a name that does not fit it is no other than a run that does not exist.
    if (held.authority.originRunId !== originRunId) return runFault('TOOL_NOT_IN_SNAPSHOT');
    const found = more?.(held);
    return found instanceof Fault ? found : { held, more: found };
  }
}

function runFault(code: string): Fault {
  switch (code) {
    case 'TOOL_NOT_IN_SNAPSHOT':
    case 'TURN_ENDED':
    case 'STALE_INSTANCE':
      return new Fault(code, refusals[code]);
    default:
      return platformFault('UNAVAILABLE');
  }
}
