import type { Requirement } from './requirement.js';

/** Permission modes, rules, approvals and what never replaces them. */
export const perm = {
  'R-PERM-1': {
    title: 'Permission modes',
    owner: 'tool-gateway',
    behavior: 'Three modes settle which effects run, ask or are refused where no rule matches.',
    clauses: {
      1: 'default gives its row of the table of mode by effect and target',
      2: 'auto_approve gives its row',
      3: 'full_access gives its row',
      4: 'A missing mode is default, and so is a stored one that nobody knows',
      5: 'Deny beats ask beats allow whatever their order, and a rule holds only for the arguments that it names',
    },
  },
  'R-PERM-2': {
    title: 'A confirmation beats full access',
    owner: 'tool-gateway',
    behavior: 'A tool that must be confirmed by a person is confirmed by a person in every mode.',
    clauses: { 1: 'In full_access such a tool still becomes an interaction' },
  },
  'R-PERM-3': {
    title: 'Files',
    owner: 'tool-gateway',
    behavior: 'A file is reachable where its real place is allowed, judged on what was opened and not on what was written.',
    clauses: {
      1: 'A link that leads out of the workspace is not followed',
      2: 'Two dots inside a glob do not lead out',
      3: 'A path that becomes a link between check and opening is refused',
      4: 'On a volume that ignores case another spelling does not lead out',
      5: "Another agent's private scope is refused in full access too",
      6: "Two sessions at once never get each other's working folder",
      7: 'glob and grep are checked on each file they open',
    },
  },
  'R-PERM-4': {
    title: 'Commands',
    owner: 'tool-gateway',
    behavior: 'A command is judged whole, and an approval covers exactly the command, folder, session and call that it was given for.',
    clauses: {
      1: 'Approving git status does not cover git status; rm -rf x',
      2: 'Approving git status does not cover git push',
      3: 'An approval given once is used by exactly one of two parallel calls',
      4: 'An approval of one session is worth nothing in another',
      5: 'find -exec, a command behind env, and reading protected paths are not taken for safe',
      6: 'The same command in another folder or another call asks again',
    },
  },
  'R-PERM-5': {
    title: 'Settings',
    owner: 'tool-gateway',
    behavior: 'A change of settings is approved one at a time.',
    clauses: { 1: 'The approval is used up by one call; the second asks again' },
  },
  'R-PERM-6': {
    title: 'One consent for one call of an MCP tool',
    owner: 'tool-gateway',
    behavior: 'Consent is bound to one call with its exact arguments and target, is used once, and is remembered nowhere.',
    clauses: {
      1: 'A configuration imported with autoApprove is read back without it, and the call still asks',
      2: 'Changing one byte of the arguments after the approval asks again',
      3: 'Reconfiguring the server after the approval asks again',
      4: 'Of two executions racing for one approval exactly one runs',
      5: 'An answer out of another session, or by somebody not entitled, is refused',
      6: 'After expiry the call is denied, and a later answer changes nothing',
      7: 'The 65th pending interaction of a session is APPROVAL_CAPACITY and not queued',
      8: 'An approval that was not dispatched within two minutes is worth nothing',
    },
  },
  'R-PERM-7': {
    title: 'Being signed in is no permission',
    owner: 'tool-gateway',
    behavior: 'OAuth, enablement and selection of a server say nothing about whether its tools may act.',
    clauses: { 1: 'A tool that writes, on a server signed in, enabled and selected, still asks in default mode' },
  },
  'R-PERM-8': {
    title: 'A reviewer proposes, the gateway decides',
    owner: 'tool-gateway',
    behavior: 'An automatic review can spare a person a question only where all of it holds; any doubt asks the person.',
    clauses: {
      1: 'A reviewer that does not answer leads to a question',
      2: 'A verdict for other arguments than those of the call leads to a question',
      3: 'Output of a tool that says to approve everything does not change a critical verdict',
      4: 'A verdict claimed by a worker changes nothing',
    },
  },
  'R-PERM-9': {
    title: "A plugin's tool policy",
    owner: 'plugin-registry',
    behavior: 'On a server with a closed tool policy, a tool that the policy does not name does not exist.',
    clauses: {
      1: 'A tool that appears on the live server undeclared is not listed',
      2: 'A forged call of it is refused',
    },
  },
  'R-PERM-10': {
    title: 'Grants are never inherited',
    owner: 'session-service',
    behavior: 'A child session starts without any approval of its parent.',
    clauses: {
      1: 'A child of the same agent asks for the path and the command that its parent approved',
      2: 'A child of another agent asks for both as well',
    },
  },
  'R-PERM-11': {
    title: 'Moving a session clears its permissions',
    owner: 'session-service',
    behavior: 'Approvals end when a session gets another agent.',
    clauses: { 1: 'What was approved under one agent asks again after the move to another' },
  },
  'R-PERM-12': {
    title: 'An unreadable policy allows nothing',
    owner: 'tool-gateway',
    behavior: 'When the policy cannot be resolved the answer is closed, typed and worth trying again.',
    clauses: {
      1: 'No MCP tool is listed',
      2: 'No MCP tool is executed',
      3: 'The run reports an error that may be retried',
    },
  },
} as const satisfies Record<`R-PERM-${number}`, Requirement>;
