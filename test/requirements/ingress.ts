import type { Requirement } from './requirement.js';

/** Features, slots, and the one step that turns them into what a run may read. */
export const ingress = {
  'R-INGRESS-1': {
    title: 'Two layers and one seam',
    owner: 'session-service',
    behavior: 'Owners write features, runs read snapshots, and ingress alone leads from the one to the other.',
    clauses: {
      1: 'No other code can write a snapshot',
      2: "No other service's identity can write one",
      3: 'A write to a feature alone never changes what a running turn sees',
    },
  },
  'R-INGRESS-2': {
    title: 'Four features',
    owner: 'platform',
    behavior: 'Tools, skills, agent presets and MCP servers are declared, and a declaration starts nothing.',
    clauses: {
      1: 'Registering a server starts nothing and lists no tool',
      2: 'A preset never changes the binding of inbound messages',
    },
  },
  'R-INGRESS-3': {
    title: 'Authors and discovery write features only',
    owner: 'plugin-registry',
    behavior: 'What is registered once is there once, and leaves with its owner.',
    clauses: {
      1: 'One registration makes one entry in a snapshot',
      2: 'Removing the plugin leaves none',
      3: 'A check of the code finds no other collector',
    },
  },
  'R-INGRESS-4': {
    title: 'Slots are bound to their owner',
    owner: 'plugin-registry',
    behavior: 'A slot is identified by owner, feature and local name, and clashes are found before anything is published.',
    clauses: {
      1: 'A doubled name of one owner, a source claimed twice and a doubled provider are found while preparing',
      2: 'Identity does not depend on the order of scanning',
    },
  },
  'R-INGRESS-5': {
    title: 'Visibility follows the tree of owners',
    owner: 'session-service',
    behavior: 'A requester sees its own and what stands above it; the nearest owner of a name wins.',
    clauses: {
      1: 'The tool of a sibling plugin is not visible',
      2: 'The nearer owner shadows the farther',
      3: 'Two owners whose qualified names would be equal are refused at registration',
    },
  },
  'R-INGRESS-6': {
    title: 'Epochs and generations',
    owner: 'platform',
    behavior: 'A change is taken up by the next turn, whole, while the running one keeps what it has.',
    clauses: {
      1: 'After a change of implementation only, the next turn runs the new one and the running turn the old one',
      2: 'Two commits that race make one GENERATION_CONFLICT',
      3: 'A failed activation leaves the old generation serving',
      4: 'Old resources are released exactly once, after their last use',
    },
  },
  'R-INGRESS-7': {
    title: 'At boot there is the core',
    owner: 'session-service',
    behavior: 'A fresh start holds the built-in core and loads the rest when it is needed.',
    clauses: {
      1: 'After boot exactly the built-in core is there',
      2: 'Booting again changes nothing',
      3: 'A built-in that was removed leaves',
      4: 'No tool of a plugin is loaded',
    },
  },
  'R-INGRESS-8': {
    title: 'Inbound messages load what they need',
    owner: 'session-service',
    behavior: 'Only a message that is bound to an agent pays for its capabilities, before its run starts.',
    clauses: {
      1: 'A message that hits no agent, is a command or is delegated loads nothing',
      2: 'The load is done before the prompt is built',
      3: 'What was taken is released on errors and cancels too',
    },
  },
  'R-INGRESS-9': {
    title: 'The binding follows match rules',
    owner: 'session-service',
    behavior: "An inbound message belongs to the agent whose rules match it; a preset's name decides nothing.",
    clauses: {
      1: 'Each field matches as described; the fields of a rule must all match, of the rules any',
      2: 'Two agents that match one message are an error at apply and AGENT_AMBIGUOUS on the wire',
      3: 'A disabled or missing agent is passed over',
      4: 'An empty list of rules matches nothing, and a rule without a field is refused or matches nothing',
      5: 'A numeric scene id compares as text, an empty media list and nested lists behave as described',
      6: 'A preset of the same name changes neither provider nor model of a binding',
      7: 'What no rule matches goes to the agent with the id default, else is NO_AGENT',
    },
  },
  'R-INGRESS-10': {
    title: 'The resolved binding is recorded',
    owner: 'session-service',
    behavior: 'A turn can be traced to the binding that chose its agent.',
    clauses: { 1: 'A run records the version of the binding that it used' },
  },
  'R-INGRESS-11': {
    title: 'Filters: platforms, scopes, permissions',
    owner: 'session-service',
    behavior: 'These three, and no others, settle whether a capability is there for a message.',
    clauses: {
      1: 'The table of three filters, each absent, matching or not, gives the declared verdicts',
      2: 'A skill whose tools are all filtered is there with no tools',
      3: 'A scheduled turn never gets a tool meant for chats',
    },
  },
  'R-INGRESS-12': {
    title: 'The language of permits',
    owner: 'session-service',
    behavior: 'Permits are checked when they are registered and deny wherever they cannot be decided.',
    clauses: {
      1: 'A table of permits and subjects gives the declared verdicts',
      2: 'An empty user() or role() is refused at registration',
      3: 'A checker that throws denies',
    },
  },
  'R-INGRESS-13': {
    title: 'The cache of projections',
    owner: 'session-service',
    behavior: 'A projection is reused only where every input that a filter consulted is the same.',
    clauses: {
      1: 'A tool for one user is not visible to another with the same roles in the same chat',
      2: 'Nor can the other call it',
      3: 'The same holds for a tool of one group',
      4: 'The verdict of a custom checker is not reused for another subject unless it declares what it depends on',
      5: 'The key is made from canonical JSON: separators in values cannot make two keys equal',
      6: 'Two bindings in turn do not evict each other',
    },
  },
  'R-INGRESS-14': {
    title: 'Turns in flight',
    owner: 'session-service',
    behavior: 'Each turn has an immutable projection of its own, built whole before it is seen.',
    clauses: {
      1: "Two interleaved turns with different rights, a thousand times: neither sees the other's tool",
      2: 'Releasing twice has no effect',
      3: 'A checker that throws or hangs ends the turn closed, leaks nothing, and the next turn is right',
    },
  },
  'R-INGRESS-15': {
    title: 'Reserved names at registration',
    owner: 'plugin-registry',
    behavior: 'An author can neither take a built-in name nor claim to be built in.',
    clauses: {
      1: "A plugin that registers a built-in's name is refused at registration",
      2: 'The built-in is still there after load, cleanup, unloading the plugin and refreshing the core',
      3: 'The host sets the source; one that the author states is ignored',
    },
  },
  'R-INGRESS-16': {
    title: 'Same names and removal',
    owner: 'plugin-registry',
    behavior: 'Removing an entry removes that entry.',
    clauses: {
      1: "With x of two owners, removing the first's leaves the second's, in any order",
      2: 'A feature that is disposed of is empty',
    },
  },
  'R-INGRESS-17': {
    title: 'MCP servers connect when needed',
    owner: 'mcp-broker',
    behavior: 'A server that nobody uses is not connected, and a failing one holds up nobody.',
    clauses: {
      1: 'A binding without the server never connects it',
      2: 'A reload does not cut a running call',
      3: 'One failing server does not keep others from being published',
    },
  },
  'R-INGRESS-18': {
    title: 'Presets for subagents',
    owner: 'session-service',
    behavior: 'The policy names the presets that an agent may start.',
    clauses: {
      1: 'A preset that is denied is not offered',
      2: 'A forged request for it is refused',
    },
  },
  'R-INGRESS-19': {
    title: 'Capabilities end with their turn',
    owner: 'tool-gateway',
    behavior: 'What a turn was given cannot be used after it.',
    clauses: {
      1: 'A call after the end of the turn is TURN_ENDED',
      2: 'A call after a reload with the old turn is refused too',
    },
  },
  'R-INGRESS-20': {
    title: 'Deferred tools',
    owner: 'session-service',
    behavior: 'Tools can be loaded during a session, from what the session may have, up to a limit.',
    clauses: {
      1: 'What is loaded is part of the projection',
      2: 'The thirteenth is refused or displaces another, as documented',
    },
  },
  'R-INGRESS-21': {
    title: 'Explaining',
    owner: 'admin-api',
    behavior: 'A person can see why a session has a tool, or why not.',
    clauses: {
      1: 'explain names owner, slot, source, each filter with its verdict, reservation and fingerprint',
      2: 'For an absent tool it names the first reason',
    },
  },
} as const satisfies Record<`R-INGRESS-${number}`, Requirement>;
