import type { Requirement } from './requirement.js';

/** Sessions: selection, moves, children, forks and their end. */
export const session = {
  'R-SESSION-1': {
    title: 'The selection is kept as it was made',
    owner: 'session-service',
    behavior: 'A choice of skills is refused where it is wrong and kept where it becomes wrong later.',
    clauses: {
      1: 'Unknown names are refused, with the list of them',
      2: 'A selection without the scope of an agent cannot be expressed',
      3: 'A name that becomes invalid later stays stored and has no effect',
    },
  },
  'R-SESSION-2': {
    title: 'Moving a session to another agent',
    owner: 'session-service',
    behavior: 'A move happens whole or not at all, and what the new agent lacks has no effect.',
    clauses: {
      1: 'After a crash at any step the session belongs wholly to the one or the other agent',
      2: 'Skills that the new agent lacks have no effect, and have it again after moving back',
      3: "A run of the old agent's that is going cannot execute after the move",
    },
  },
  'R-SESSION-3': {
    title: 'A changed policy of the same agent',
    owner: 'session-service',
    behavior: 'A new policy holds for a session like a move does.',
    clauses: {
      1: 'After a crash at any step the session has wholly the old or the new policy',
      2: 'Skills that the new policy lacks have no effect, and have it again when they return',
      3: 'A run that is going cannot execute what the new policy took away',
    },
  },
  'R-SESSION-4': {
    title: 'A child has capabilities of its own',
    owner: 'session-service',
    behavior: 'A child has at most what both its parent and its own agent have.',
    clauses: {
      1: 'It has no tool, server or mode that its parent lacks',
      2: 'It has none that its own agent lacks',
      3: "A change of one's cached catalogue does not show in the other's",
      4: 'It inherits no approval',
    },
  },
  'R-SESSION-5': {
    title: 'A child ends with its parent',
    owner: 'session-service',
    behavior: 'Deleting a parent leaves no child behind.',
    clauses: {
      1: 'A running child is aborted',
      2: 'Its operations are closed in the journal',
      3: 'No mapping of it is left',
    },
  },
  'R-SESSION-6': {
    title: 'Forking',
    owner: 'session-service',
    behavior: 'A fork takes along what was chosen and nothing that was allowed.',
    clauses: {
      1: 'It has the same selection of skills',
      2: 'It has no approval, no mapping and no pending interaction of the original',
    },
  },
  'R-SESSION-7': {
    title: 'Deleting a session',
    owner: 'session-service',
    behavior: 'A deleted session is gone from everywhere.',
    clauses: { 1: 'No bucket, store or stream of runtime state holds anything under its id' },
  },
} as const satisfies Record<`R-SESSION-${number}`, Requirement>;
