import type { Requirement } from './requirement.js';

/** Plugins: packages, verification, activation, revocation. */
export const plugin = {
  'R-PLUGIN-1': {
    title: 'Package and manifest',
    owner: 'plugin-registry',
    behavior: 'A package is installed only if its manifest is understood and everything it names lies inside it and is free.',
    clauses: {
      1: 'No malformed manifest is installed, and none does harm',
      2: 'Unknown fields are treated as documented',
      3: 'A relative path that leaves the package is refused',
      4: 'Doubled ids of servers or skills are refused',
      5: 'A server name that another plugin or a person owns is refused',
    },
  },
  'R-PLUGIN-2': {
    title: 'Verification',
    owner: 'plugin-registry',
    behavior: 'The files are those that the publisher signed.',
    clauses: {
      1: 'A flipped byte is refused',
      2: 'A file too many is refused',
      3: 'A missing file is refused',
      4: 'Checksums edited together with their file are refused',
    },
  },
  'R-PLUGIN-3': {
    title: 'Declared capabilities are enforced',
    owner: 'plugin-registry',
    behavior: 'A plugin contributes only what it declared.',
    clauses: { 1: 'A contribution of a kind not declared refuses the whole activation' },
  },
  'R-PLUGIN-4': {
    title: 'Platforms',
    owner: 'plugin-registry',
    behavior: 'A plugin that cannot work here is shown as such and keeps what people set.',
    clauses: {
      1: 'An unsupported plugin is unavailable with a reason and contributes nothing',
      2: 'Its installation and settings are kept',
    },
  },
  'R-PLUGIN-5': {
    title: 'Activation is all or nothing',
    owner: 'plugin-registry',
    behavior: 'A plugin is active with all its contributions or with none.',
    clauses: {
      1: 'A failure at any step leaves no contribution visible',
      2: 'Two activations of one plugin run one after the other',
    },
  },
  'R-PLUGIN-6': {
    title: 'Revocation',
    owner: 'plugin-registry',
    behavior: 'After a plugin was taken away nothing of it is dispatched, whatever a snapshot says and whoever was away.',
    clauses: {
      1: 'A tool that a snapshot lists is refused at dispatch',
      2: 'A call that waits for consent is refused and its approval settled as cancelled',
      3: 'A call in flight is aborted and its outcome recorded',
      4: 'Its skills leave the effective selection',
      5: 'The next fingerprint is another one',
      6: 'Services that were away during the revocation refuse when they return',
    },
  },
  'R-PLUGIN-7': {
    title: 'Unavailable is not disabled',
    owner: 'plugin-registry',
    behavior: 'Unavailable, disabled and uninstalled are three states, and a choice of a person outlives the first.',
    clauses: {
      1: 'The three states are told apart',
      2: 'Disabled by a person stays so when the plugin becomes available again',
      3: 'A quarantine ends only by a retry or by another package',
    },
  },
  'R-PLUGIN-8': {
    title: "The agent's policy holds for plugins",
    owner: 'session-service',
    behavior: 'A plugin is there for an agent only where its policy says so.',
    clauses: {
      1: 'Without the plugin in its policy an agent has none of its tools',
      2: 'It has none of its skills either',
    },
  },
  'R-PLUGIN-9': {
    title: 'Every contribution has an owner',
    owner: 'plugin-registry',
    behavior: 'A contribution is changed and removed by its owner alone.',
    clauses: {
      1: "A plugin cannot remove, replace or shadow another's contribution",
      2: "Nor a person's",
      3: "A change of one owner's contributions moves the epoch of no other owner",
    },
  },
  'R-PLUGIN-10': {
    title: 'Updating',
    owner: 'plugin-registry',
    behavior: 'Between two versions there is no moment at which both are half there.',
    clauses: { 1: 'A tool that the new version lacks can at no moment be executed against its process' },
  },
} as const satisfies Record<`R-PLUGIN-${number}`, Requirement>;
