import type { Requirement } from './requirement.js';

/** Execution of calls, interactions, resume, cancellation and the journal. */
export const exec = {
  'R-EXEC-1': {
    title: 'The path of a call',
    owner: 'platform',
    behavior: "A batch goes from the worker to the gateway, through the session's mapping, to the target and back as a normalised result.",
    clauses: {
      1: 'A trace of one batch shows exactly that order',
      2: 'Each hop carries session, run and call id',
    },
  },
  'R-EXEC-2': {
    title: 'A run keeps the snapshot it started with',
    owner: 'session-service',
    behavior: 'A snapshot freezes what is visible to a run, never what it is allowed.',
    clauses: {
      1: 'A change of configuration during a run does not alter the definitions that its model gets',
      2: 'A revocation during a run makes the call fail',
    },
  },
  'R-EXEC-3': {
    title: 'When calls run in parallel',
    owner: 'tool-gateway',
    behavior: 'Only calls whose tools declare that they read and may overlap do overlap; results come in call order always.',
    clauses: {
      1: 'Two calls of such a tool overlap',
      2: 'Such a call and a call of an MCP tool run one after the other, in call order',
      3: 'Results are committed in call order in both cases',
    },
  },
  'R-EXEC-4': {
    title: 'The order of checks',
    owner: 'tool-gateway',
    behavior: 'The checks of a call stand in one fixed order, and the first that refuses ends it.',
    clauses: {
      1: 'Of two checks that would both refuse, the answer is that of the earlier one, for each pair of neighbours',
      2: 'An aborted batch stops before the checks of its next call',
      3: 'An unknown tool never reaches a check that could ask or grant',
    },
  },
  'R-EXEC-5': {
    title: 'A call that waits does not stop the others',
    owner: 'tool-gateway',
    behavior: 'What needs a decision becomes an interaction, and the rest of the batch goes on.',
    clauses: {
      1: 'Of a batch ask, ok, question, ok the two ok calls are executed',
      2: 'Its interactions are numbered 0 for the ask and 1 for the question',
      3: 'The run is suspended',
    },
  },
  'R-EXEC-6': {
    title: 'Interactions are ordered',
    owner: 'session-service',
    behavior: 'Decisions stand in the order of the calls that need them, whenever they became known.',
    clauses: {
      1: 'The order survives a restart',
      2: 'Ids are unique',
      3: 'Ten interactions of one batch stand in call order, not in order of completion',
    },
  },
  'R-EXEC-7': {
    title: 'Questions',
    owner: 'tool-gateway',
    behavior: 'The built-in question is a strict form that a person fills in; a malformed one is an error and pauses nothing.',
    clauses: {
      1: 'Header, text, options, labels and descriptions are taken at their limits and refused beyond them',
      2: 'An unknown key is an error result and no pause',
      3: 'No MCP tool can have the name of the question tool',
    },
  },
  'R-EXEC-8': {
    title: 'Answering',
    owner: 'session-service',
    behavior: 'Only the first pending interaction can be answered, with an answer of its kind, with effect once.',
    clauses: {
      1: 'An answer out of order is INTERACTION_ORDER',
      2: 'An answer of another kind is INTERACTION_KIND',
      3: 'An empty answer is ANSWER_EMPTY',
      4: "Another session's interaction is not found",
      5: 'An answer submitted twice at once has exactly one effect',
      6: 'An answer after all are resolved is NO_INTERACTION',
      7: 'After a crash between deciding and settling the replay changes nothing more',
    },
  },
  'R-EXEC-9': {
    title: 'Denying',
    owner: 'session-service',
    behavior: 'A denial ends that call and nothing else.',
    clauses: {
      1: 'The denied call is never dispatched and its result says DENIED',
      2: 'The same call later asks again',
    },
  },
  'R-EXEC-10': {
    title: 'An approved call runs at its approval, resolved anew',
    owner: 'tool-gateway',
    behavior: 'The call is executed under its own operation id as the world is now, not as it was when it asked.',
    clauses: {
      1: 'A tool disabled between ask and approval is refused without dispatch',
      2: 'A server removed in between is refused without dispatch',
      3: 'A session moved to another agent in between is refused without dispatch',
      4: 'A session deleted in between is refused without dispatch',
      5: 'A plugin uninstalled in between is refused without dispatch',
      6: 'In each of these the result is an error and the next interaction can be answered',
    },
  },
  'R-EXEC-11': {
    title: 'One resume run after the last decision',
    owner: 'session-service',
    behavior: 'The model goes on in one new run, when nothing is left to decide.',
    clauses: {
      1: 'Three interactions lead to exactly one resume run, with an id of its own, after the third',
      2: 'Two last answers at once lead to one run',
      3: 'A restart with everything answered and no run yet starts exactly one',
    },
  },
  'R-EXEC-12': {
    title: 'Committed results survive a resume',
    owner: 'session-service',
    behavior: 'What was executed is fed to the model again and not executed again.',
    clauses: {
      1: 'A side effect is counted once over pause, restart and resume',
      2: 'A side effect is counted once although its output was fitted',
      3: 'A side effect is counted once although the model is asked again',
    },
  },
  'R-EXEC-13': {
    title: 'A permission asked for after the call',
    owner: 'tool-gateway',
    behavior: 'A tool cannot lead the gateway into repeating it by asking late.',
    clauses: {
      1: 'A tool that asks twice in full access gets one retry, then an interaction, and never a loop',
      2: 'A tool that asks after its dispatch, without proof that nothing happened, ends as an error',
    },
  },
  'R-EXEC-14': {
    title: 'Fitting output never repeats a call',
    owner: 'tool-gateway',
    behavior: 'Results that are too large are shortened for the model from the last one backwards; the whole of each stays stored.',
    clauses: {
      1: 'With room for less than three results the last is degraded first',
      2: 'The count of side effects does not change',
      3: 'A result that cannot be stored away is an error and not a second call',
      4: 'For any sizes and any budget the total fits or the batch ends in a typed error, in order, with one result for each call',
      5: 'The stored result stays complete, and only its own session can read it',
    },
  },
  'R-EXEC-15': {
    title: 'Model output that was cut off',
    owner: 'worker',
    behavior: 'Calls in output that was cut off are not executed, because nobody knows what they were going to be.',
    clauses: {
      1: 'None of the calls is executed and each gets one result OUTPUT_TRUNCATED',
      2: 'No permission check and no reviewer runs for them',
      3: 'They count as none executed',
      4: 'One recovery per run is automatic; a second cut ends the run',
      5: 'Calls that the provider executed itself are left alone',
    },
  },
  'R-EXEC-16': {
    title: 'Limits of a run',
    owner: 'tool-gateway',
    behavior: 'A run has a bounded number of calls, counted over its resumes, and is stopped when it only repeats itself.',
    clauses: {
      1: 'The 129th call is CALL_LIMIT, also when it is an approved one',
      2: 'After two rounds without progress the model is corrected, after four the run ends',
    },
  },
  'R-EXEC-17': {
    title: 'Errors are results',
    owner: 'tool-gateway',
    behavior: 'A failing call fails alone.',
    clauses: { 1: 'After a transport error in the first call the second still runs' },
  },
  'R-EXEC-18': {
    title: 'Cancelling reaches the end',
    owner: 'platform',
    behavior: 'A cancel travels to whatever is executing, and its loss costs bounded time only.',
    clauses: {
      1: 'A cancel before dispatch, at any point where a call waits, dispatches nothing',
      2: 'A cancel in flight reaches the MCP server as a notification within a second, and nothing follows it',
      3: 'A result that has arrived when the cancel is seen is kept',
      4: 'A tool that throws an AbortError without a cancel is an ordinary error',
      5: "Where the cancel is lost, the lapse of the run's lease cancels within bounded time",
    },
  },
  'R-EXEC-19': {
    title: 'Cancelling a turn that waits',
    owner: 'session-service',
    behavior: 'A cancelled turn has no open interaction and no usable approval, and what ended late is still recorded.',
    clauses: {
      1: 'A late result is in the journal although the turn was cancelled',
      2: 'Approvals that were not dispatched are revoked',
    },
  },
  'R-EXEC-20': {
    title: 'The journal',
    owner: 'tool-gateway',
    behavior: 'A claim is written before the effect and the outcome before anybody is told, so that an operation has at most one effect.',
    clauses: {
      1: 'A crash before the claim: the call was not dispatched and runs once on the next delivery',
      2: 'A crash between claim and outcome: the call is indeterminate and is never repeated',
      3: 'A crash after the outcome: the outcome is given and nothing runs',
      4: 'A request to execute that is delivered again makes one physical call and answers the same outcome',
      5: 'An indeterminate call is shown to a person, who alone can end it',
    },
  },
  'R-EXEC-21': {
    title: 'Hooks',
    owner: 'worker',
    behavior: 'Hooks watch attempts and do not change them.',
    clauses: {
      1: 'Each hook fires once for each real attempt, also for approved calls',
      2: 'A hook that fails does not change the result',
    },
  },
} as const satisfies Record<`R-EXEC-${number}`, Requirement>;
