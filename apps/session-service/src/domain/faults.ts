import { runFaults } from '@ambit/contracts';
import type { FaultIn } from './run-state.js';

/** Why a run failed, in words for the person who reads it. */
export function userVisible(code: keyof typeof runFaults, detail?: string): FaultIn {
  return { code, message: detail === undefined || detail === '' ? runFaults[code].message : detail };
}
