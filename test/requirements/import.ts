import type { Requirement } from './requirement.js';

/** Importing skills from agents, tools, archives and downloads. */
export const imports = {
  'R-IMPORT-1': {
    title: 'An explicit target, and a preview first',
    owner: 'skill-store',
    behavior: 'An import names its target, shows what it would do, and does exactly that or asks for a new preview.',
    clauses: {
      1: 'Without a target it is refused',
      2: 'A target that cannot hold skills is refused',
      3: 'A target equal to the source is refused',
      4: 'A source edited or deleted after the preview fails for that skill and asks for a new preview',
      5: 'A path in the request is refused',
    },
  },
  'R-IMPORT-2': {
    title: 'An import copies',
    owner: 'skill-store',
    behavior: 'The target is a copy without links, which does not follow its source.',
    clauses: {
      1: 'A link anywhere in the source is an error',
      2: "The target's digest stays when the source is edited or deleted",
    },
  },
  'R-IMPORT-3': {
    title: 'Skip, rename, overwrite',
    owner: 'skill-store',
    behavior: 'A conflict is left alone, gets the first free legal name, or is replaced in one step.',
    clauses: {
      1: 'After a crash at any step the target is wholly old or wholly new',
      2: 'Renaming imports at once get different names',
      3: 'A reader during an overwrite never sees a mixture',
      4: 'What is being staged is never listed',
      5: 'Skip leaves the target as it was',
    },
  },
  'R-IMPORT-4': {
    title: 'Partial failure',
    owner: 'skill-store',
    behavior: 'Skills of one import succeed and fail one by one.',
    clauses: {
      1: 'Of three with a bad second the first and third are installed',
      2: 'The result names the second with its code',
      3: 'The target has one catalogue event and the source none',
    },
  },
  'R-IMPORT-5': {
    title: 'Adapters pass the same validation',
    owner: 'skill-store',
    behavior: 'Whatever format a skill comes in, one validator decides.',
    clauses: {
      1: 'A name with ../ and an absolute path are refused',
      2: 'More than 50 MiB and invalid YAML are refused',
      3: 'Files below other files are kept, or reported as dropped',
    },
  },
  'R-IMPORT-6': {
    title: 'Archives and downloads',
    owner: 'skill-store',
    behavior: 'An archive is bounded in every dimension before anything of it is believed.',
    clauses: {
      1: 'An entry that leads out of the target is refused',
      2: 'An archive that explodes is refused',
      3: 'Entries that differ only in case are refused',
      4: 'An entry that is a link is refused',
    },
  },
} as const satisfies Record<`R-IMPORT-${number}`, Requirement>;
