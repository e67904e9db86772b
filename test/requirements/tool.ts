import type { Requirement } from './requirement.js';

/** The catalogue of tools, exposure, reserved names, and the mapping that bounds execution. */
export const tool = {
  'R-TOOL-1': {
    title: 'A composed catalogue',
    owner: 'session-service',
    behavior: 'Built-in tools and tools of MCP servers are joined in a fixed order; a source that fails costs its own tools alone.',
    clauses: {
      1: 'The same inputs always give the same tools in the same order',
      2: 'A group of built-in tools that fails to load leaves all other groups listed',
      3: 'When the discovery of MCP tools fails the built-in tools are still listed',
      4: 'After failed discovery the mapping is published anew: no tool that the catalogue no longer lists can be executed',
      5: 'Catalogue and mapping are published as one record: no reader sees a new one of the first with an old one of the second',
    },
  },
  'R-TOOL-2': {
    title: 'Exposure classes',
    owner: 'tool-gateway',
    behavior: 'Every tool declares one of four exposures, which settles who can see it, switch it and call it.',
    clauses: {
      1: 'A user-configurable tool is shown to the model and in the list that people configure, and the disabled list removes it',
      2: 'A system-model tool is shown to the model whatever the disabled list says, and is not in the list that people configure',
      3: 'A diagnostic tool is in no snapshot and no model can call it; the diagnostic API answers it',
      4: 'A runtime-only tool answers neither a model nor the diagnostic API, only internal callers',
      5: 'Registering a tool under another exposure than its own stops the start with EXPOSURE_MISMATCH',
      6: 'Registering a tool without an exposure stops the start',
    },
  },
  'R-TOOL-3': {
    title: 'The disabled list acts on user-configurable tools only',
    owner: 'tool-gateway',
    behavior: 'People can switch off what is theirs to switch, and switching it off takes the right to call it as well.',
    clauses: {
      1: 'Disabling tape_search or subagent_orchestrator changes nothing',
      2: 'Disabling exec removes it from the catalogue and from the mapping',
      3: 'A forged call of a disabled tool is TOOL_NOT_IN_SNAPSHOT',
      4: 'An approved call whose tool was disabled while it waited is TOOL_DISABLED',
    },
  },
  'R-TOOL-4': {
    title: 'Tools that read the tape',
    owner: 'tool-gateway',
    behavior: 'A model can search the tape and read around an entry within bounds; the other tape tools are not for models.',
    clauses: {
      1: 'tape_search takes limits 1 and 50 and refuses 0, 51 and a blank query',
      2: 'tape_context takes the least and the greatest of ids, neighbours, entries and bytes and refuses one beyond each',
      3: 'A forged model call of tape_info, tape_anchors or tape_handoff is refused',
      4: 'The scope of linked subagents never returns an entry of an unrelated session',
      5: 'An MCP server that offers tape_info gets neither the name listed nor mapped',
    },
  },
  'R-TOOL-5': {
    title: 'Reserved names win over MCP tools',
    owner: 'session-service',
    behavior: 'No MCP tool takes the name of a built-in one, and what was refused for its name is shown.',
    clauses: {
      1: 'No MCP tool appears or is mapped under a reserved name',
      2: 'That holds as well while the built-in tool is disabled, gated off or diagnostic',
      3: 'The admin API shows what was refused with server, tool and reason',
      4: 'Each refusal leaves an audit record and is counted',
    },
  },
  'R-TOOL-6': {
    title: 'The final name is what is checked',
    owner: 'session-service',
    behavior: 'Reservation is decided on the name that a model would see, however it came about.',
    clauses: {
      1: 'The tool info of a server called tape never takes the name tape_info',
      2: 'Other case, spaces at the end and look-alike letters are refused where they equal a reserved name after NFKC and case folding',
    },
  },
  'R-TOOL-7': {
    title: 'Every built-in name is protected',
    owner: 'session-service',
    behavior: 'The reserved set is all names that a built-in could ever register, not a list kept by hand.',
    clauses: {
      1: 'An MCP server that offers every built-in name shadows none of them',
      2: 'The reserved set follows the table of registrations, whatever is enabled',
    },
  },
  'R-TOOL-8': {
    title: 'The configurable catalogue has no effects',
    owner: 'tool-gateway',
    behavior: 'Showing people what they can switch touches no session, no server and no cache.',
    clauses: {
      1: 'It answers while mcp-broker is stopped',
      2: 'Asking for it changes no mapping, no count of tool listings, no remembered access and no workspace',
      3: 'It names no diagnostic, runtime-only or system-model tool',
      4: 'It names disabled tools too, so that they can be switched on again',
    },
  },
  'R-TOOL-9': {
    title: 'The mapping of a session is the boundary of execution',
    owner: 'tool-gateway',
    behavior: "A tool runs in a session only if that session's own mapping names it; nobody else's mapping ever stands in.",
    clauses: {
      1: 'A session without a mapping is refused a tool that another session has',
      2: 'A session whose published mapping is empty is refused the same tool',
      3: 'After its mapping was cleared a session is refused its old tool although another session still has it',
      4: 'A thousand interleaved publications and executions of two sessions with different tools make no call across',
      5: 'A call of an unmapped tool is refused before anybody is asked for permission',
    },
  },
  'R-TOOL-10': {
    title: 'The snapshot of a draft',
    owner: 'session-service',
    behavior: 'A session that is not persisted yet has a snapshot of its own, which its first execution uses up.',
    clauses: {
      1: "A draft's snapshot serves the first execution under the new session, once",
      2: 'Another draft that publishes does not affect it',
      3: "A persisted session without a mapping can use no draft's snapshot",
      4: 'After its first use, or after ten minutes, it is gone',
      5: 'Only the client that the draft was issued to can persist it',
    },
  },
  'R-TOOL-11': {
    title: 'A mapping pins the target, not only the kind',
    owner: 'tool-gateway',
    behavior: 'A call goes to the server, generation and binding that the snapshot named, or nowhere.',
    clauses: {
      1: 'A server reconfigured between catalogue and call is TARGET_CHANGED without a dispatch',
      2: 'A removed server is refused without a dispatch, also when another server offers the same name',
      3: "A second server with the same tools changes no name, and never receives the first one's call",
      4: 'A server restarted with the same configuration is called, as documented',
      5: 'A built-in tool whose version moved since the snapshot is TARGET_CHANGED without a dispatch',
      6: 'A built-in tool that this release has no more is TOOL_GONE without a dispatch',
    },
  },
  'R-TOOL-12': {
    title: 'Clearing a session',
    owner: 'tool-gateway',
    behavior: 'Deleting a session leaves nothing behind that could still run.',
    clauses: {
      1: 'Its mappings are gone',
      2: 'Its pending approvals are settled as cancelled',
      3: 'What the journal had parked for it is closed',
      4: 'Later calls in it are refused',
    },
  },
  'R-TOOL-13': {
    title: 'Parsing arguments',
    owner: 'tool-gateway',
    behavior: 'Arguments that are not a bounded, unambiguous JSON object are an error, and never replaced by invented ones.',
    clauses: {
      1: 'Malformed JSON, an array, a string and null are BAD_ARGUMENTS for tools of every kind, and nothing is dispatched',
      2: 'Ten mebibytes, and 65 levels, are refused likewise',
      3: 'Doubled keys and __proto__ are refused likewise',
    },
  },
  'R-TOOL-14': {
    title: 'What a model sees, by kind of agent and session',
    owner: 'session-service',
    behavior: 'The kind of agent, the kind of session and the mode settle which built-in tools can be in a snapshot.',
    clauses: {
      1: 'A table of agent kind, session kind and mode gives exactly the declared names',
      2: "An ACP agent's snapshot holds tools of MCP servers only",
    },
  },
  'R-TOOL-15': {
    title: 'Settings tools need their skill',
    owner: 'tool-gateway',
    behavior: 'Tools that change settings can be seen and called only while the skill they belong to is active.',
    clauses: {
      1: 'Viewing the settings skill and then calling a settings tool in the same run succeeds',
      2: 'Without it the tool is absent and a forged call refused',
    },
  },
} as const satisfies Record<`R-TOOL-${number}`, Requirement>;
