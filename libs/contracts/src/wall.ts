import { toToken } from './kit/token.js';

/** Where the workers' NATS account meets the services': subjects and names that both sides of the wall must spell alike. */

/** Exported by the workers' account: what services ask of workers. */
export const WORKER_SERVICES = 'ambit.rpc.worker.v1.>';
/** Exported by the services' account: signals to workers. */
export const WORKER_SIGNALS = 'ambit.ctl.worker.v1.>';

/** Everything that may be asked of, or signalled to, any worker of one agent. */
export function workerSubjectsOf(agentId: string): readonly string[] {
  const agent = toToken(agentId);
  return [`ambit.rpc.worker.v1.*.*.${agent}.*`, `ambit.ctl.worker.v1.*.*.${agent}.*`];
}

/** The durable consumer of runs for one agent and pool. */
export function runConsumer(agentId: string, pool: string): string {
  return `${toToken(agentId)}_${toToken(pool)}`;
}

/** The inbox prefix of a worker with this credential: it may receive answers nowhere else. */
export function workerInboxPrefix(worker: { readonly agentId: string; readonly credentialName: string }): string {
  return `_INBOX.${toToken(worker.agentId)}.${toToken(worker.credentialName)}`;
}

/** The inbox prefix of a service: no service can listen to the answers of another. */
export function serviceInboxPrefix(service: string): string {
  return `_INBOX.${toToken(service)}`;
}
