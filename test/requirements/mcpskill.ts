import type { Requirement } from './requirement.js';

/** Skills that come from MCP servers. */
export const mcpskill = {
  'R-MCPSKILL-1': {
    title: 'Behind a switch',
    owner: 'mcp-broker',
    behavior: 'Switched off it does not exist; switched on its failure costs the server nothing else.',
    clauses: {
      1: 'Off: no list and no read of resources is caused by skills',
      2: 'Off: its module is not loaded',
      3: 'On and failing: tools, prompts and resources of the server are unaffected',
      4: 'Switching it moves the version of the catalogue',
    },
  },
  'R-MCPSKILL-2': {
    title: 'Only from servers with resources',
    owner: 'mcp-broker',
    behavior: 'The capability is checked before anything is asked.',
    clauses: { 1: 'A server without resources gets no request about them' },
  },
  'R-MCPSKILL-3': {
    title: 'Discovery',
    owner: 'mcp-broker',
    behavior: 'Skills are found among all pages of resources, within limits, one bad one costing itself.',
    clauses: {
      1: 'Skills on three pages are all found',
      2: 'Of 500 resources no more than the limit become skills',
      3: 'A SKILL.md with a reference and a manifest beside it is one skill',
      4: 'While one read hangs the others appear in time',
      5: 'A resource without text is passed over with a reason',
    },
  },
  'R-MCPSKILL-4': {
    title: 'Becoming a prompt command',
    owner: 'mcp-broker',
    behavior: 'A skill becomes a command with a stable qualified name and the fields that we honour.',
    clauses: {
      1: 'A table of resources gives the declared commands',
      2: 'The description falls back to the resource and then to the first line',
      3: 'Arguments are substituted',
      4: 'A clash of names is qualified further and never shadows a local skill',
    },
  },
  'R-MCPSKILL-5': {
    title: 'Which commands a model may use',
    owner: 'tool-gateway',
    behavior: 'Four conditions together make a command usable as a skill.',
    clauses: {
      1: 'The table of the four conditions gives the declared verdicts',
      2: 'user-invocable: false hides it from people only',
      3: 'A disabled skill is refused by a forged name',
      4: 'Where a local skill has the same name the local one is run',
    },
  },
  'R-MCPSKILL-6': {
    title: 'Remote content is not trusted',
    owner: 'tool-gateway',
    behavior: 'What a server writes into a skill is text for the model and nothing more.',
    clauses: {
      1: 'Hooks, shell, model, allowed tools and inline commands have no effect',
      2: 'A forged closing mark stays inside the frame',
      3: 'allowed-tools never widens',
    },
  },
  'R-MCPSKILL-7': {
    title: 'Caching',
    owner: 'mcp-broker',
    behavior: 'The cache belongs to one generation of one server, and does not remember failures.',
    clauses: {
      1: 'A failure is not kept longer than thirty seconds',
      2: 'Another generation of the server has another cache',
      3: 'Two servers of one name share nothing',
    },
  },
  'R-MCPSKILL-8': {
    title: 'A closed connection',
    owner: 'mcp-broker',
    behavior: 'With the connection go the skills that came over it.',
    clauses: {
      1: 'The commands of the server are in no new snapshot',
      2: 'A result of the old connection that comes late is not stored',
    },
  },
  'R-MCPSKILL-9': {
    title: 'Disconnecting, disabling, removing, reconfiguring',
    owner: 'mcp-broker',
    behavior: 'Each of these clears what a closed connection clears.',
    clauses: {
      1: 'After an explicit disconnect the commands are in no new snapshot',
      2: 'The same after disabling, removing and reconfiguring the server',
    },
  },
  'R-MCPSKILL-10': {
    title: 'Prompts changed',
    owner: 'mcp-broker',
    behavior: 'Only prompts are read again.',
    clauses: {
      1: 'There is one listing of prompts and no read of a resource',
      2: 'The skills are still there',
    },
  },
  'R-MCPSKILL-11': {
    title: 'Resources changed',
    owner: 'mcp-broker',
    behavior: 'Resources, prompts and skills are read again and published together.',
    clauses: {
      1: 'A skill added, changed or removed is reflected',
      2: "Both notifications in any order end in the server's state",
      3: 'A burst is joined',
    },
  },
  'R-MCPSKILL-12': {
    title: 'Notifications that were announced',
    owner: 'mcp-broker',
    behavior: 'A server is heard on the changes that it declared.',
    clauses: {
      1: 'An undeclared notification is ignored',
      2: 'A declared one is acted upon',
      3: 'A server that declares none is read again after a time',
    },
  },
  'R-MCPSKILL-13': {
    title: 'The search index follows',
    owner: 'tool-gateway',
    behavior: 'Searching finds only what is there.',
    clauses: { 1: "A removed server's skill is not found" },
  },
  'R-MCPSKILL-14': {
    title: 'The skills extension of MCP',
    owner: 'mcp-broker',
    behavior: 'Where a server declares the extension its own list is the truth.',
    clauses: {
      1: "Declared: the server's list of skills is used and resources are not scanned",
      2: 'A digest that does not match is refused',
      3: 'A name that does not match makes the skill invalid',
      4: 'Undeclared: resources are scanned only behind the switch',
    },
  },
  'R-MCPSKILL-15': {
    title: 'Files beside a skill',
    owner: 'tool-gateway',
    behavior: 'A skill can refer to files of its own server while it is active.',
    clauses: {
      1: 'A linked file is readable through the same server while the skill is active',
      2: 'Sizes are bounded',
      3: "Another server's address is refused",
      4: 'No file is written to disk as something executable',
    },
  },
  'R-MCPSKILL-16': {
    title: 'No cycle in the code',
    owner: 'mcp-broker',
    behavior: 'The parts that build skills can be loaded without those that use them.',
    clauses: {
      1: 'The import graph has no cycle',
      2: 'A missing builder stops the start and not each connection',
    },
  },
  'R-MCPSKILL-17': {
    title: 'Policy and snapshot',
    owner: 'session-service',
    behavior: 'Skills of servers follow the policy for servers and stand in the fingerprint.',
    clauses: {
      1: 'Skills of a server outside the policy are absent',
      2: 'Server, address and digest of each are in the fingerprint',
      3: 'They are no part of the selection of owned skills, and outlast a move or the start of a child only where its policy has the server',
    },
  },
} as const satisfies Record<`R-MCPSKILL-${number}`, Requirement>;
