import { startGuarded, type GuardedProcess } from '@ambit/embedded';
import type { Agent } from '@ambit/contracts';
import { fileURLToPath } from 'node:url';
import type { System } from './system.js';

const worker = fileURLToPath(new URL('../../examples/worker-plain-nats/worker.mjs', import.meta.url));
const dieAt = fileURLToPath(new URL('../fixtures/die-at.mjs', import.meta.url));

/** Starts the example worker on plain NATS; with `diesAt` it kills itself when the answer to that call is there. */
export async function startWorker(system: System, agent: Pick<Agent, 'id'>, diesAt = ''): Promise<GuardedProcess> {
  return startGuarded({
    command: process.execPath,
    args: ['--import', dieAt, worker],
    env: {
      ...process.env,
      NODE_OPTIONS: '',
      NATS_URL: system.natsUrl,
      AMBIT_CREDS: await system.workerCredentials({ agentId: agent.id }),
      AMBIT_AGENT: agent.id,
      DIE_AT: diesAt,
    },
  });
}
