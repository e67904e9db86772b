import { startGuarded, type GuardedProcess } from '@ambit/embedded';
import type { Agent } from '@ambit/contracts';
import { fileURLToPath } from 'node:url';
import type { System } from './system.js';

const worker = fileURLToPath(new URL('../../examples/worker-plain-nats/worker.mjs', import.meta.url));
const clockOff = fileURLToPath(new URL('../fixtures/clock-off.mjs', import.meta.url));
const dieAt = fileURLToPath(new URL('../fixtures/die-at.mjs', import.meta.url));

/** Starts the example worker on plain NATS; with `diesAt` it kills itself when the answer to that call is there. */
export async function startWorker(system: System, agent: Pick<Agent, 'id'>, diesAt = ''): Promise<GuardedProcess> {
  return start(system, agent, { DIE_AT: diesAt });
}

/** The same on a machine whose clock is off. */
export async function startWorkerAt(system: System, agent: Pick<Agent, 'id'>, clockOffMs: number): Promise<GuardedProcess> {
  return start(system, agent, { DIE_AT: '', CLOCK_OFF_MS: String(clockOffMs) });
}

async function start(system: System, agent: Pick<Agent, 'id'>, how: Readonly<Record<string, string>>): Promise<GuardedProcess> {
  return startGuarded({
    command: process.execPath,
    args: ['--import', clockOff, '--import', dieAt, worker],
    env: {
      ...process.env,
      NODE_OPTIONS: '',
      NATS_URL: system.natsUrl,
      AMBIT_CREDS: await system.workerCredentials({ agentId: agent.id }),
      AMBIT_AGENT: agent.id,
      ...how,
    },
  });
}
