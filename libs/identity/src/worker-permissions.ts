import { buckets, pattern, runConsumer, streams, toToken, workerInboxPrefix, workerSubjectsOf, type Contract } from '@ambit/contracts';
import { workerContracts } from './accounts.js';
import type { Permissions } from './claims.js';

const ANSWER_NANOSECONDS = 3_600 * 1_000_000_000;

export interface WorkerIdentity {
  readonly agentId: string;
  readonly credentialName: string;
  readonly pools: readonly string[];
}

/** What a worker's connection may do: its own agent's subjects, its pools' runs, its agent's snapshots, its own inbox. */
export function workerPermissions(contracts: readonly Contract[], worker: WorkerIdentity): Permissions {
  const agent = toToken(worker.agentId);
  const consumers = worker.pools.map((pool) => runConsumer(worker.agentId, pool));
  const runs = streams.runs.name;
  const snapshots = buckets.snapshots.name;
  return {
    pub: {
      allow: [
        ...workerContracts(contracts).map((contract) => ofAgent(contract, worker.agentId)),
        ...consumers.map((consumer) => `$JS.API.CONSUMER.MSG.NEXT.${runs}.${consumer}`),
        ...consumers.map((consumer) => `$JS.ACK.${runs}.${consumer}.>`),
        `$JS.API.DIRECT.GET.KV_${snapshots}.$KV.${snapshots}.${agent}.>`,
      ],
    },
    sub: { allow: [`${workerInboxPrefix(worker)}.>`, ...workerSubjectsOf(worker.agentId)] },
    // Each request for a tool may be answered once.
    resp: { max: 1, ttl: ANSWER_NANOSECONDS },
  };
}

/** The contract's subject for this agent alone. A wildcard before the agent would let one agent speak for another. */
function ofAgent(contract: Contract, agentId: string): string {
  const allowed = pattern(contract, { agentId });
  const beforeAgent = allowed.split(`.${toToken(agentId)}`)[0] ?? '';
  if (!contract.subject.includes('.{agentId}') || beforeAgent.includes('*'))
    throw new TypeError(`${contract.subject} is for workers, so {agentId} must be its first key`);
  return allowed;
}
