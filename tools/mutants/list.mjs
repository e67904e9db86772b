// What `npm run mutants` breaks, one at a time. A mutant is a change of one source file that switches off one protection, and the
// clauses whose tests must notice. To add one: name it, give `file`, a `find` that stands in the file exactly once, what replaces
// it, and the clauses; `only` narrows the tests that cite them to those with it in their name. The product itself has no switch: the change is made in
// a copy of the tree. Mutants that are the same change of a file are tried in one run; `setup` tells them apart, and
// the test `control` must stay green, or the change broke more than it meant to.

/**
 * Gate → the clauses that a call cannot keep without it. Every gate of libs/capability must stand here. The test that has to notice cites one of them
 * and is called `gate <name>: …`; where a later gate would refuse with the same code, it asserts the gate's name in the audit record.
 */
export const gateClauses = {
  'run-known': ['R-NATS-1#1'],
  'run-owner': ['R-NATS-1#1'],
  'run-session': ['R-NATS-1#1'],
  'run-token': ['R-NATS-1#1'],
  'run-live': ['R-INGRESS-19#1'],
  'run-attempt': ['R-INGRESS-19#2'],
  fingerprint: ['R-SNAP-1#3'],
  'not-aborted': ['R-EXEC-18#1'],
  mapping: ['R-TOOL-9#2', 'R-TOOL-9#5', 'R-EXEC-4#3'],
  exposure: ['R-TOOL-2#3', 'R-TOOL-2#4', 'R-TOOL-4#3'],
  arguments: ['R-TOOL-13#1', 'R-TOOL-13#3'],
  schema: ['R-TOOL-13#1'],
  question: ['R-EXEC-5#2', 'R-EXEC-7#2'],
  'target-there': ['R-TOOL-11#6'],
  fence: ['R-PLUGIN-6#1'],
  'owner-lease': ['R-NATS-6#1'],
  target: ['R-TOOL-11#5'],
  'policy-known': ['R-PERM-12#2'],
  'agent-enabled': ['R-SESSION-3#3'],
  'tool-enabled': ['R-SESSION-3#3'],
  'server-allowed': ['R-SESSION-3#3', 'R-EXEC-2#2'],
  'plugin-allowed': ['R-SESSION-3#3'],
  delegation: ['R-SUB-2#1'],
  permission: ['R-PERM-1#5'],
  'call-limit': ['R-EXEC-16#1'],
  'rate-limit': ['R-NATS-9#2'],
};

const GATES_FILE = 'libs/capability/src/gates.ts';

/**
 * The mutant that leaves one gate out. All of them are one change of the file, which leaves out the gate whose name stands in a file of the copy:
 * tools/mutants/leave-out.mjs writes it before each test, so that one start of the system serves them all.
 */
export function gateMutant(gate) {
  return {
    name: gate,
    file: GATES_FILE,
    find: 'if (options.off?.has(gate.name) === true) continue;',
    replace:
      "if (process.getBuiltinModule('node:fs').readFileSync(process.env.AMBIT_LEFT_OUT, 'utf8') === gate.name || options.off?.has(gate.name)) continue;",
    clauses: gateClauses[gate],
    only: `gate ${gate}:`,
    control: 'gate none:',
    setup: 'tools/mutants/leave-out.mjs',
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
