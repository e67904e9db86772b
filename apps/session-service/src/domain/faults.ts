import type { FaultIn } from './run-state.js';

/** Why a run failed, in words for the person who reads it. */
const REASONS = {
  AGENT_DISABLED: 'The agent is switched off',
  DELIVERIES_EXHAUSTED: 'The run was handed to a worker three times and none of them finished it; look at the workers’ logs',
  WORKER_FAILED: 'The worker ended the run with a failure',
  WORKSPACE_UNAVAILABLE: 'No worker could open the session’s workspace',
  PARKED:
    'JetStream was lost while the run was going: nobody knows which of its last calls have happened. Look what they did before you go on',
  LIMIT_REACHED: 'The run reached one of its limits',
} as const;

export function userVisible(code: keyof typeof REASONS, detail?: string): FaultIn {
  return { code, message: detail === undefined || detail === '' ? REASONS[code] : detail };
}
