import { CALLS_ENDED_TOGETHER, type Claim, type Outcome, type Payload, type toolGateway } from '@ambit/contracts';

type CallEnded = Payload<typeof toolGateway.callEnded>;

interface Ended {
  readonly claim: Claim;
  readonly outcome: Outcome;
}

/** What watchers of runs are told of calls that ended: one payload for each run, and for each so many calls. */
export function endedTogether(ended: readonly Ended[]): CallEnded[] {
  const runs = new Map<string, Ended[]>();
  for (const one of ended) {
    const known = runs.get(one.claim.runId);
    if (known === undefined) runs.set(one.claim.runId, [one]);
    else known.push(one);
  }
  return [...runs.values()].flatMap((all) => partsOf(all).map(payloadOf));
}

function partsOf(all: readonly Ended[]): Ended[][] {
  const parts: Ended[][] = [];
  for (let from = 0; from < all.length; from += CALLS_ENDED_TOGETHER) parts.push(all.slice(from, from + CALLS_ENDED_TOGETHER));
  return parts;
}

function payloadOf(all: readonly Ended[]): CallEnded {
  const [first] = all;
  if (first === undefined) throw new TypeError('no call ended');
  const { runId, sessionId, agentId } = first.claim;
  return {
    runId,
    sessionId,
    agentId,
    calls: all.map(({ claim, outcome }) => ({
      operationId: claim.operationId,
      callId: claim.callId,
      tool: claim.tool,
      status: outcome.asks === undefined ? outcome.status : 'waiting',
      fault: outcome.fault ?? null,
      rule: claim.rule,
      durationMs: outcome.durationMs,
      at: outcome.at,
    })),
  };
}
