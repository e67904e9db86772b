// What `npm run mutants` breaks, one at a time. A mutant is a change of one source file that switches off one protection, and the
// clauses whose tests must notice. To add one: name it, give `file`, a `find` that stands in the file exactly once, what replaces
// it, and the clauses. The product itself has no switch: the change is made in a copy of the tree.

/** Gate → the clauses that a call cannot keep without it. Every gate of libs/capability must stand here. */
export const gateClauses = {
  'run-known': ['R-NATS-1#1'],
  'run-owner': ['R-NATS-1#1'],
  'run-session': ['R-NATS-1#1'],
  'run-token': ['R-NATS-1#1'],
  'run-live': ['R-INGRESS-19#1'],
  'run-attempt': ['R-EXEC-20#4', 'R-INGRESS-19#2'],
  fingerprint: ['R-SNAP-1#3'],
  'not-aborted': ['R-EXEC-4#2', 'R-EXEC-18#1'],
  mapping: ['R-TOOL-9#1', 'R-TOOL-9#2', 'R-TOOL-9#3'],
  exposure: ['R-TOOL-2#3', 'R-TOOL-2#4', 'R-TOOL-4#3'],
  arguments: ['R-TOOL-13#1', 'R-TOOL-13#2', 'R-TOOL-13#3'],
  schema: ['R-TOOL-13#1'],
  question: ['R-EXEC-5#2', 'R-EXEC-7#1', 'R-EXEC-7#2'],
  'target-there': ['R-EXEC-10#2', 'R-TOOL-11#2'],
  fence: ['R-PLUGIN-6#1', 'R-EXEC-10#5'],
  'owner-lease': ['R-NATS-6#1'],
  target: ['R-TOOL-11#1'],
  'policy-known': ['R-PERM-12#2'],
  'agent-enabled': ['R-SESSION-3#3'],
  'tool-enabled': ['R-TOOL-3#4', 'R-EXEC-10#1'],
  'server-allowed': ['R-MCP-14#2', 'R-MCP-14#3'],
  'plugin-allowed': ['R-PLUGIN-8#1'],
  delegation: ['R-SUB-2#1', 'R-SUB-2#2', 'R-SUB-2#3'],
  permission: ['R-PERM-1#1', 'R-PERM-6#2', 'R-EXEC-9#1'],
  'call-limit': ['R-EXEC-16#1'],
  'rate-limit': ['R-NATS-9#2'],
};

const GATES_FILE = 'libs/capability/src/gates.ts';

/** The mutant that leaves one gate out. */
export function gateMutant(gate) {
  return {
    name: gate,
    file: GATES_FILE,
    find: 'if (options.off?.has(gate.name) === true) continue;',
    replace: `if (gate.name === '${gate}') continue;`,
    clauses: gateClauses[gate],
  };
}

/** Protections that are no gates of the pure decision. */
export const otherMutants = [
  {
    name: 'reply-inbox',
    file: 'libs/bus/src/responder.ts',
    find: 'message.reply === undefined || !isInbox(message.reply)',
    replace: 'message.reply === undefined',
    clauses: ['R-NATS-7#1'],
  },
  {
    name: 'safe-errors',
    file: 'libs/bus/src/responder.ts',
    find: "return platformFault('INTERNAL', { traceId });",
    replace: "return platformFault('INTERNAL', { traceId, error: error instanceof Error ? error.stack : String(error) });",
    clauses: ['R-NATS-7#1'],
  },
  {
    name: 'bounded-input',
    file: 'libs/bus/src/responder.ts',
    find: 'if (bytes > this.#maxBytes) throw',
    replace: 'if (bytes > this.#maxBytes * 1_000) throw',
    clauses: ['R-NATS-7#1'],
  },
];
