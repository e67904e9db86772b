import type { Requirement } from './requirement.js';

/** What follows from being several processes on a bus. */
export const nats = {
  'R-NATS-1': {
    title: 'Identity',
    owner: 'platform',
    behavior: "A worker reaches the subjects of its own agent, and what it claims about itself counts only where it is the worker's own.",
    clauses: {
      1: "A call with a session of another agent's, forged by a worker, is refused like one that does not exist",
      2: "A worker's credential can publish only on its request subjects and read only its inbox",
      3: 'Principal, actor and via in headers from a worker are ignored',
    },
  },
  'R-NATS-2': {
    title: 'At most one effect',
    owner: 'tool-gateway',
    behavior: 'The claim in the journal is taken by compare-and-set before the effect.',
    clauses: {
      1: 'A request published twice makes one call',
      2: 'A request delivered again makes one call',
      3: 'Two replicas of the gateway make one call',
    },
  },
  'R-NATS-3': {
    title: 'Cancel over the bus',
    owner: 'platform',
    behavior: 'A cancel is acknowledged, and a lease stands behind it.',
    clauses: {
      1: 'A killed worker ends its calls within bounded time',
      2: 'A cut network ends them within bounded time',
      3: 'A lost cancel ends them within bounded time',
    },
  },
  'R-NATS-4': {
    title: 'Large results',
    owner: 'tool-gateway',
    behavior: 'What is too large for a message is stored, and the message says where.',
    clauses: {
      1: 'A result of 32 MiB arrives whole although messages hold 1 MiB',
      2: 'The message holds its digest and size',
    },
  },
  'R-NATS-5': {
    title: 'Events are hints',
    owner: 'platform',
    behavior: 'A consumer compares versions and reads again.',
    clauses: {
      1: 'With every event lost the result is the same',
      2: 'With every event doubled and out of order the result is the same',
    },
  },
  'R-NATS-6': {
    title: 'Revocation holds at dispatch',
    owner: 'tool-gateway',
    behavior: 'The right to dispatch is fenced, so that no cached event keeps a removed right alive.',
    clauses: {
      1: 'With plugin-registry cut off, calls to tools of plugins are refused after the lease time',
      2: "A claim made on authority from before a revocation is refused by the journal's fence",
    },
  },
  'R-NATS-7': {
    title: 'Typed errors',
    owner: 'platform',
    behavior: 'What fails is told as a code with a safe message, never with a stack or a secret.',
    clauses: {
      1: 'Whatever a handler throws crosses as a declared fault or as INTERNAL with a trace id',
      2: 'A secret planted in configuration is in no reply',
      3: 'It is in no log',
    },
  },
  'R-NATS-8': {
    title: 'Several replicas',
    owner: 'tool-gateway',
    behavior: 'What replicas share is stored with revision checks.',
    clauses: { 1: 'Two gateways and one approval make one execution' },
  },
  'R-NATS-9': {
    title: 'Back-pressure',
    owner: 'tool-gateway',
    behavior: 'A session has a bounded queue of its own.',
    clauses: {
      1: 'A session that floods does not slow another',
      2: 'Over its limit it gets a typed refusal that says when to come back',
    },
  },
  'R-NATS-10': {
    title: 'Clocks',
    owner: 'platform',
    behavior: 'No clock of one machine is compared with that of another.',
    clauses: { 1: "A client's clock that is off by a day changes no expiry" },
  },
} as const satisfies Record<`R-NATS-${number}`, Requirement>;
