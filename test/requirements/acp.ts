import type { Requirement } from './requirement.js';

/** Agents that speak the Agent Client Protocol. */
export const acp = {
  'R-ACP-1': {
    title: 'What an ACP agent is given',
    owner: 'session-service',
    behavior: 'It has a loop and tools of its own; from Ambit it gets MCP tools, through the edge.',
    clauses: {
      1: 'The snapshot of its session holds tools of MCP servers only',
      2: 'It cannot call tool-gateway itself',
    },
  },
  'R-ACP-2': {
    title: 'Initialising',
    owner: 'worker',
    behavior: 'Optional methods are called where they were advertised, and early updates are kept.',
    clauses: {
      1: 'Updates sent before the session is answered are not lost',
      2: 'No optional method is called that was not advertised',
    },
  },
  'R-ACP-3': {
    title: 'Files',
    owner: 'worker',
    behavior: 'Files are read and written inside the workspace, as opened, within bounds.',
    clauses: {
      1: 'A link that leads out is refused',
      2: 'Two dots are refused',
      3: 'Without a workspace everything is refused',
      4: 'Writing through a link is refused',
      5: 'Line 0 and limit 0 are refused or answered as the protocol says',
      6: 'A file one byte over 10 MB is refused',
    },
  },
  'R-ACP-4': {
    title: 'Terminals',
    owner: 'worker',
    behavior: 'A terminal runs one command with its arguments in the workspace, for its session, and leaves nothing running.',
    clauses: {
      1: 'Command and arguments never pass through a shell',
      2: "Another session's terminal is refused",
      3: 'A working folder outside is refused',
      4: 'Only listed variables are in its environment',
      5: 'Releasing it kills its group of processes',
      6: 'Output is cut at a boundary between characters',
    },
  },
  'R-ACP-5': {
    title: 'Permissions',
    owner: 'session-service',
    behavior: "The agent's request becomes an interaction that is settled once, whatever happens.",
    clauses: {
      1: 'Time-out settles it exactly once',
      2: 'Cancelling settles it exactly once',
      3: 'Closing the session settles it exactly once',
      4: 'A single approval never selects always where once is offered',
    },
  },
  'R-ACP-6': {
    title: 'MCP servers for ACP agents',
    owner: 'worker',
    behavior: 'An agent is told the servers of its own policy and nothing more.',
    clauses: {
      1: 'A server that was not selected is never handed over',
      2: 'Secrets go to the agent that selected the server and to no other',
      3: 'One bad server does not cost the others',
      4: 'A change holds for the next session and is shown so',
    },
  },
  'R-ACP-7': {
    title: 'Signing in on a terminal',
    owner: 'worker',
    behavior: "The agent's ways to sign in can be used where we can run them.",
    clauses: {
      1: 'It is advertised only where it can be executed',
      2: 'Cancel and failure end it cleanly',
      3: 'Several ways are offered',
      4: 'After success the agent is told, and the session that was blocked is created',
      5: 'Nothing is put into a shell line',
    },
  },
  'R-ACP-8': {
    title: 'No move to an ACP agent',
    owner: 'session-service',
    behavior: 'A conversation cannot be handed to an agent that keeps its own.',
    clauses: {
      1: 'The move is TRANSFER_UNSUPPORTED',
      2: 'The session is unchanged',
    },
  },
  'R-ACP-9': {
    title: 'Updates after a cancel',
    owner: 'worker',
    behavior: 'A cancelled turn ends, and nothing of it appears in the next.',
    clauses: {
      1: 'Updates of a cancelled turn are not added to the next',
      2: 'The agent receives the cancel',
      3: 'The prompt ends with the reason cancelled, or is settled by time-out',
    },
  },
} as const satisfies Record<`R-ACP-${number}`, Requirement>;
