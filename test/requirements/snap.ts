import type { Requirement } from './requirement.js';

/** The closed snapshot and its fingerprint. */
export const snap = {
  'R-SNAP-1': {
    title: 'A closed snapshot for each run',
    owner: 'session-service',
    behavior: 'A run has one immutable record of everything it may see, named by the hash of its bytes.',
    clauses: {
      1: 'The record never changes and its fingerprint is the sha256 of its canonical bytes',
      2: 'It holds tools with target, schema, exposure and effect, skills with digest and owner, plugins, servers and switches',
      3: 'A request to execute carries the fingerprint, and another than that of the run is refused',
    },
  },
  'R-SNAP-2': {
    title: 'What is in the fingerprint',
    owner: 'session-service',
    behavior: 'Everything that shapes the catalogue is in it, and nothing else.',
    clauses: {
      1: 'Each input that can change the catalogue changes the fingerprint',
      2: 'Session, principal, mode, rules, grants and time do not',
      3: 'Equal inputs give equal bytes in any order, on any host, in any locale',
    },
  },
  'R-SNAP-3': {
    title: 'All, none and a full list differ',
    owner: 'session-service',
    behavior: 'A policy that says all is not one that happens to name all.',
    clauses: { 1: 'null, [] and the list of all ids give three fingerprints' },
  },
  'R-SNAP-4': {
    title: 'What leads to a new snapshot',
    owner: 'session-service',
    behavior: 'The next run sees a changed world, and an unchanged one costs nothing.',
    clauses: {
      1: 'Each change of model, policy, workspace, skill, server or plugin gives the next run another snapshot',
      2: 'Without a change the snapshot comes from the cache',
    },
  },
  'R-SNAP-5': {
    title: 'A build that was overtaken',
    owner: 'session-service',
    behavior: 'A snapshot built for an agent that the session no longer has is dropped.',
    clauses: {
      1: 'An agent changed during the build: the old build is neither cached nor published',
      2: 'A catalogue that could not be read whole is told as degraded and is never an empty list in silence',
    },
  },
  'R-SNAP-6': {
    title: 'Activating a skill refreshes the snapshot',
    owner: 'session-service',
    behavior: 'It is the one change of visibility inside a run.',
    clauses: {
      1: 'The same run has another fingerprint afterwards, valid from its next step',
      2: 'The records of the run link the two',
    },
  },
  'R-SNAP-7': {
    title: 'The prompt follows the snapshot',
    owner: 'session-service',
    behavior: 'What the instructions tell a model about tools is what it has.',
    clauses: { 1: 'A tool that the prompt names is among the definitions' },
  },
} as const satisfies Record<`R-SNAP-${number}`, Requirement>;
