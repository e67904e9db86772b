import type { Requirement } from './requirement.js';

/** MCP servers: configuration, identity, lifecycle, discovery and calls. */
export const mcp = {
  'R-MCP-1': {
    title: 'Configuration of servers',
    owner: 'mcp-broker',
    behavior: 'A server is configured with a transport and its fields, and its secrets can be written but never read.',
    clauses: {
      1: 'A server of each transport is read back as it was written',
      2: 'An unknown transport is refused',
      3: 'A header value with a line break is refused',
      4: 'Neither list nor get returns a secret',
      5: 'No secret is in a log',
    },
  },
  'R-MCP-2': {
    title: 'No permission stands in the configuration of a server',
    owner: 'mcp-broker',
    behavior: 'A field that approves calls in advance cannot be stored by any way in.',
    clauses: {
      1: 'Creating or updating a server refuses the field or stores nothing of it',
      2: 'Importing a block of servers drops it',
      3: 'Applying a file drops or refuses it, and what is read back never has it',
      4: 'The admin API offers no permission setting per server',
    },
  },
  'R-MCP-3': {
    title: 'Identity of servers',
    owner: 'mcp-broker',
    behavior: 'A server has an immutable id, and a generation that moves with every change of what it is and with nothing else.',
    clauses: {
      1: 'Each edit of a field that is part of the identity moves the generation',
      2: 'Edits of name, description and icon do not',
      3: 'Deleted and created again under the same name it has another id',
    },
  },
  'R-MCP-4': {
    title: 'States of a server',
    owner: 'mcp-broker',
    behavior: 'Servers connect without waiting for each other, in bounded time, and leave nothing behind when stopped.',
    clauses: {
      1: 'A server that never answers delays neither the others nor readiness',
      2: 'The hard time-out kills its child',
      3: 'After a stop its grandchildren are gone too',
      4: 'Disabling it while it connects wins: it does not come up later',
    },
  },
  'R-MCP-5': {
    title: 'Disabled stays disabled',
    owner: 'mcp-broker',
    behavior: 'A person who switched a server off is not overruled by the system.',
    clauses: {
      1: 'It survives a restart',
      2: 'It survives an upgrade',
      3: 'It survives the activation of the plugin that the server belongs to',
      4: 'It survives applying defaults again',
    },
  },
  'R-MCP-6': {
    title: 'Reconnecting',
    owner: 'mcp-broker',
    behavior: 'A lost session is opened again once, and a call that may have happened is not repeated.',
    clauses: {
      1: 'After an HTTP server forgot its sessions the next call opens one anew, once, and succeeds where nothing was dispatched',
      2: 'A call whose dispatch is uncertain is not repeated',
    },
  },
  'R-MCP-7': {
    title: 'Environment of stdio servers',
    owner: 'mcp-broker',
    behavior: 'A child gets the environment that its configuration names, and nothing of ours.',
    clauses: {
      1: 'No credential of the platform is in the environment of a child, in any mode',
      2: 'Without a mode the child gets the minimal environment',
    },
  },
  'R-MCP-8': {
    title: 'Limits on the wire',
    owner: 'mcp-broker',
    behavior: 'What a server sends is bounded per tool, so that one monster does not hide the rest.',
    clauses: {
      1: 'A server with 151 tools in 267 KB lists all of them',
      2: 'One tool that is too large is dropped alone, with a diagnosis',
    },
  },
  'R-MCP-9': {
    title: 'Only what a server offers is listed, to the end',
    owner: 'mcp-broker',
    behavior: 'Lists are asked for where the server declares them, page after page until there is no cursor.',
    clauses: {
      1: 'A server without prompts is never asked for prompts',
      2: 'All pages are read',
      3: 'A repeated cursor ends the reading',
      4: 'An empty string is a cursor like any other; only its absence ends the list',
    },
  },
  'R-MCP-10': {
    title: 'Changed lists',
    owner: 'mcp-broker',
    behavior: 'A notification of a changed list moves the version of that catalogue of that server.',
    clauses: {
      1: 'Each of the three notifications moves the version exactly once',
      2: 'A burst of a hundred is joined',
      3: 'No version of another server moves',
    },
  },
  'R-MCP-11': {
    title: 'A refresh that was overtaken',
    owner: 'mcp-broker',
    behavior: 'A list read before an invalidation is never published after it.',
    clauses: { 1: 'Invalidating during a refresh: the stale list is never published' },
  },
  'R-MCP-12': {
    title: 'Failure stays with the server that failed',
    owner: 'mcp-broker',
    behavior: 'A server whose list cannot be read is shown so, and no other server notices.',
    clauses: {
      1: 'Its error is recorded, and the tools of the others are listed',
      2: 'A call of a tool that it offered before ends in a typed fault while it fails',
    },
  },
  'R-MCP-13': {
    title: 'Names of MCP tools',
    owner: 'session-service',
    behavior: 'A tool has a qualified name that depends on its server and itself alone, at most 64 characters, never shared.',
    clauses: {
      1: 'The same tool on two servers has two names, each the same as with one server',
      2: 'A third server whose tool imitates a qualified name collides with none of them',
      3: 'Two tools of one name on one server do not make two entries of one name',
      4: 'A name over 64 characters, or with characters that are not allowed, gets a suffix and stays unique',
      5: 'A server started later does not change what a name in an existing snapshot means',
    },
  },
  'R-MCP-14': {
    title: 'Servers an agent may use',
    owner: 'session-service',
    behavior: "The agent's policy says all, none or which servers, and is asked again at every call.",
    clauses: {
      1: 'All, none and a list of names give all, none and those',
      2: 'A policy narrowed between catalogue and call refuses the call',
      3: 'A server of a plugin outside the policy is refused',
    },
  },
  'R-MCP-15': {
    title: 'Normalised schemas',
    owner: 'mcp-broker',
    behavior: 'The hash of a schema follows its meaning, not the order of its keys.',
    clauses: {
      1: 'Another order of keys gives the same hash',
      2: 'Every real change gives another',
    },
  },
  'R-MCP-16': {
    title: 'OAuth',
    owner: 'mcp-broker',
    behavior: 'A person starts the sign-in; its answer is accepted once, for exactly the flow, server and issuer that it belongs to.',
    clauses: {
      1: 'A wrong state, a replayed code and a second callback are refused and leave no token',
      2: 'With another issuer or endpoint the stored token is not used',
      3: 'A second flow for a server cancels the first',
      4: 'Refreshes that race make one refresh',
      5: 'A server that asks for sign-in only at a tool still reaches the state required',
      6: 'A server without metadata for sign-in makes no loop',
      7: 'Tokens are sealed at rest and are in no answer and no log',
    },
  },
  'R-MCP-17': {
    title: 'Calling',
    owner: 'mcp-broker',
    behavior: "A call has the server's time-out, its progress and its cancel, and a bounded result.",
    clauses: {
      1: 'The time-out per server is taken from one second to one hour and refused beyond',
      2: 'Progress extends it where that is configured',
      3: 'A cancel sends a notification to the server',
      4: 'A result over the limit is an error and is not cut in silence',
    },
  },
  'R-MCP-18': {
    title: 'What a server asks back',
    owner: 'mcp-broker',
    behavior: 'Elicitation, sampling and roots are bounded, asked for each time, and end with the call.',
    clauses: {
      1: 'A server without a call in progress cannot sample',
      2: 'A late answer after a cancel is ignored',
    },
  },
  'R-MCP-19': {
    title: 'Servers of plugins started on demand',
    owner: 'mcp-broker',
    behavior: 'A packaged catalogue is listed without a process, and compared with the live one before the first call.',
    clauses: {
      1: 'Listing starts no process',
      2: 'A tool that differs from its package is CATALOG_DRIFT before dispatch, and does not block another tool',
    },
  },
  'R-MCP-20': {
    title: 'Secrets and addresses of transports',
    owner: 'mcp-broker',
    behavior: 'Credentials go only to the origin they were given for, and internal addresses are closed unless opened.',
    clauses: {
      1: 'A URL with credentials in it is refused',
      2: 'A redirect to another origin does not carry the Authorization header',
      3: 'Link-local and metadata addresses are refused unless an administrator allows them',
    },
  },
} as const satisfies Record<`R-MCP-${number}`, Requirement>;
