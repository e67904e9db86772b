import type { Requirement } from './requirement.js';

/** Delegation to subagents. */
export const sub = {
  'R-SUB-1': {
    title: 'When delegation is visible',
    owner: 'session-service',
    behavior: 'The orchestrator is in a snapshot only for a regular session whose policy allows it and that has somebody to delegate to.',
    clauses: {
      1: 'A child session, or one of an agent that cannot delegate, has the reason unsupported_session',
      2: 'A policy that switches delegation off has the reason policy_disabled',
      3: 'No valid slot has the reason no_valid_slots',
      4: 'The sixth slot is ignored',
      5: 'Of two slots with one id the first counts',
      6: 'A slot whose target agent was deleted is invalid; where it was the only one the tool is gone',
    },
  },
  'R-SUB-2': {
    title: 'Delegation is decided again at the call',
    owner: 'tool-gateway',
    behavior: 'Whatever the snapshot shows, the call looks at the policy, slots and kind of session of this moment.',
    clauses: {
      1: 'A policy switched off between catalogue and call is SUBAGENT_UNAVAILABLE',
      2: 'A slot deleted in between is SUBAGENT_UNAVAILABLE',
      3: "A child or grandchild that forges the call is refused although its parent's snapshot holds the tool",
      4: 'A session moved to another agent in between is refused',
    },
  },
  'R-SUB-3': {
    title: 'Operations and limits of delegation',
    owner: 'tool-gateway',
    behavior: 'Delegated runs are bounded in number, time and size, and belong to the parent that started them.',
    clauses: {
      1: 'Tasks, time-outs, waits and summaries are taken at their limits and refused beyond them',
      2: 'A fourth active delegated run of one parent is refused',
      3: "A run of one parent is not found from another's",
      4: 'Aborting the parent cancels its children and the tools they are calling',
    },
  },
  'R-SUB-4': {
    title: 'Consent for delegation',
    owner: 'session-service',
    behavior: 'Where the policy asks for it, each delegation has a consent of its own, and a crash leaves no doubt hidden.',
    clauses: {
      1: 'Consent for one delegation cannot be used for another',
      2: 'A restart between the record of dispatch and delivery shows the outcome as unknown, not as never dispatched',
      3: 'A child that waits for permission can be answered',
    },
  },
} as const satisfies Record<`R-SUB-${number}`, Requirement>;
