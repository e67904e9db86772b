import type { Requirement } from './requirement.js';

/** Who owns which state, and what the others may not touch. */
export const own = {
  'R-OWN-1': {
    title: 'One owner for each kind of state',
    owner: 'platform',
    behavior: 'Each kind of state has exactly one service that writes it; everybody else asks that service.',
    clauses: {
      1: 'A check of imports and subjects finds no code outside the owner that writes its bucket, stream or tables',
      2: "No other service's identity has rights to write on the owner's subjects, buckets and streams",
      3: "A process that holds only a worker's credential cannot publish on a subject that an owner writes",
    },
  },
  'R-OWN-2': {
    title: 'A plugin only registers capabilities',
    owner: 'plugin-registry',
    behavior: 'What a plugin brought keeps running under the owners of tools, servers and skills, also when the registry is away.',
    clauses: {
      1: "A running call to a plugin's MCP server finishes although plugin-registry was killed under it",
      2: 'The catalogue of other runs stays as it was while plugin-registry is away',
      3: 'No MCP server restarts because plugin-registry went away or came back',
      4: 'On its return plugin-registry reconciles and no contribution exists twice',
    },
  },
  'R-OWN-3': {
    title: 'The state of skills is kept per agent',
    owner: 'skill-store',
    behavior: "Agents can hold skills of one name without ever touching each other's files, cache, watcher or switches.",
    clauses: {
      1: "Editing agent A's skill leaves bytes, version and events of agent B's skill of the same name unchanged",
      2: "Disabling agent A's skill leaves agent B's of the same name enabled, its version and events unchanged",
      3: "Deleting agent A's skill leaves agent B's of the same name readable, its version and events unchanged",
    },
  },
  'R-OWN-4': {
    title: 'A session holds names of skills and nothing else of them',
    owner: 'session-service',
    behavior: 'A session remembers which skills were chosen; what they contain is read through the agent that owns them.',
    clauses: {
      1: 'A stored session holds neither a path nor content of a skill',
      2: "A session of agent B that asks by name for agent A's skill is told that there is none",
      3: 'A skill name with ../ in it, or an absolute path, is told the same',
    },
  },
  'R-OWN-5': {
    title: 'Workers translate and never decide',
    owner: 'worker',
    behavior: 'All rules about permission, mapping and exposure stand in the services, so that a dishonest worker gains nothing.',
    clauses: {
      1: "A worker built on the SDK passes the loop's tests without a platform behind it",
      2: "With a check of the gateway switched off a test goes red although the worker is honest: the rule stands nowhere in the worker's code",
    },
  },
} as const satisfies Record<`R-OWN-${number}`, Requirement>;
