import type { Requirement } from './requirement.js';

/** Skills: roots, format, discovery, selection and use. */
export const skill = {
  'R-SKILL-1': {
    title: 'A root for each agent',
    owner: 'skill-store',
    behavior: "An agent's skills lie in its own scope; a missing scope is an empty one, and no other scope stands in.",
    clauses: {
      1: 'A missing scope and an empty one are an empty catalogue',
      2: 'A file in place of the scope is refused',
      3: 'A link in place of the scope is refused',
      4: 'The agent ids ., .., a/b and CON are refused',
      5: 'The agent default never sees what lies in .agent-scopes',
    },
  },
  'R-SKILL-2': {
    title: 'The format of SKILL.md',
    owner: 'skill-store',
    behavior: 'A skill is a folder with a SKILL.md whose front matter follows the Agent Skills specification.',
    clauses: {
      1: 'allowed-tools and allowedTools are both read',
      2: 'Both at once with different values make the skill invalid',
      3: 'A missing name or description, or a name against the pattern, makes it invalid with a reason',
      4: 'A byte order mark and Windows line ends are read',
      5: 'A missing closing fence, YAML anchors that explode, doubled keys and __proto__ make it invalid and do no harm',
      6: 'A name over 64 characters makes it invalid, and of a description over 1024 no more is kept, which is told',
    },
  },
  'R-SKILL-3': {
    title: 'Scanning',
    owner: 'skill-store',
    behavior: 'The same tree gives the same catalogue, whatever order the file system tells it in and by whichever way it came.',
    clauses: {
      1: 'The order of the file system does not matter',
      2: 'A skill at depth ten is found, at eleven not',
      3: 'Any tree gives the same result through the folder mirror and through an import',
      4: 'One broken skill hides no other and is listed as invalid with its reason',
    },
  },
  'R-SKILL-4': {
    title: 'Physical confinement',
    owner: 'skill-store',
    behavior: "Every byte served lies physically in the agent's own root.",
    clauses: {
      1: 'A link in place of a file, folder, scope or root is refused',
      2: 'A hard link is treated as documented',
      3: 'A file swapped while it is read gives nothing from outside',
    },
  },
  'R-SKILL-5': {
    title: 'Watching folders',
    owner: 'skill-store',
    behavior: 'Changes on disk reach the store of the agent concerned, also when the watcher fails.',
    clauses: {
      1: "Editing a script changes that skill's digest",
      2: 'A storm of events is joined',
      3: 'The death of the watcher is noticed and polling takes over',
      4: "Edits of one agent never move another's version",
      5: 'No event tells of a staging folder',
    },
  },
  'R-SKILL-6': {
    title: 'Versions and events of a catalogue',
    owner: 'skill-store',
    behavior: "An agent's catalogue has a version that only grows, and readers see an old or a new one and nothing between.",
    clauses: {
      1: 'The version of an agent only grows',
      2: 'One change makes one event',
      3: 'A reader sees the old catalogue or the new one',
    },
  },
  'R-SKILL-7': {
    title: 'Enabling',
    owner: 'skill-store',
    behavior: 'A disabled skill stays manageable and is nowhere at run time.',
    clauses: {
      1: 'It is not in the catalogue',
      2: 'A model cannot view it',
      3: 'Its scripts cannot run',
      4: 'It is not in the effective selection',
      5: 'Enabled again it is back',
    },
  },
  'R-SKILL-8': {
    title: 'The effective skills are chosen, valid and enabled',
    owner: 'session-service',
    behavior: 'The effective set is worked out each time; the choice of a person is not rewritten by reading it.',
    clauses: {
      1: 'Disabling takes a skill out of the effective set and leaves the stored choice; enabling brings it back',
      2: 'It is worked out again at a move, a change of agent, the start of a child and the start of a run',
    },
  },
  'R-SKILL-9': {
    title: 'Skills come from the agent itself',
    owner: 'skill-store',
    behavior: "An agent has its own skills and what plugins give it, never another agent's allowance.",
    clauses: { 1: "Editing the policy of the agent default never changes another agent's fingerprint" },
  },
  'R-SKILL-10': {
    title: 'Viewing activates',
    owner: 'tool-gateway',
    behavior: 'Reading the SKILL.md of a skill makes it active for this run.',
    clauses: {
      1: 'It is active for the rest of the run and not in the next',
      2: 'A name outside the effective set is refused',
    },
  },
  'R-SKILL-11': {
    title: 'Running a script of a skill',
    owner: 'tool-gateway',
    behavior: 'Only an enabled script of an active skill runs, and as a command that is judged like any other.',
    clauses: {
      1: 'A path that leads out is refused',
      2: 'A linked script is refused',
      3: 'A disabled script is refused',
      4: 'A script of an inactive skill is refused',
      5: 'The run passes the permission for commands',
    },
  },
  'R-SKILL-12': {
    title: 'Allowed tools only narrow',
    owner: 'tool-gateway',
    behavior: "A skill's list of tools never gives a tool.",
    clauses: {
      1: 'A tool on the list that the run does not have is refused',
      2: 'Where it is enforced it narrows only while the skill drives the turn, as documented',
    },
  },
  'R-SKILL-13': {
    title: 'Drafts of skills',
    owner: 'skill-store',
    behavior: "A draft belongs to its session and is installed, by a person's decision, for the session's agent.",
    clauses: {
      1: 'A draft of one session cannot be viewed from another',
      2: 'Installed after a move it goes to the new agent or is refused',
    },
  },
  'R-SKILL-14': {
    title: 'Skills of plugins',
    owner: 'skill-store',
    behavior: 'They are read-only contributions that leave with their plugin.',
    clauses: {
      1: 'Disabling the plugin takes them out of the catalogue within one version',
      2: 'Their content is no longer served',
      3: 'Their scripts no longer run',
      4: 'They leave the effective selection',
      5: 'Importing one is PLUGIN_OWNED',
    },
  },
  'R-SKILL-15': {
    title: 'Deleting an agent',
    owner: 'skill-store',
    behavior: 'An agent leaves with its skills, whatever else is going on, and its id comes back empty.',
    clauses: {
      1: 'Deleting it during an import leaves no file of it',
      2: 'Deleting it during a move to it leaves no session that refers to a missing agent',
      3: 'An agent created under the id sees none of the old skills',
    },
  },
  'R-SKILL-16': {
    title: 'File tools cannot reach the skills of other agents',
    owner: 'tool-gateway',
    behavior: 'The private scopes are closed to file tools in every mode.',
    clauses: {
      1: "A file tool is refused another agent's scope in full access",
      2: 'Through a link or two dots it is refused as well',
    },
  },
} as const satisfies Record<`R-SKILL-${number}`, Requirement>;
