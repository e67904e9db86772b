import { acp } from './requirements/acp.js';
import { exec } from './requirements/exec.js';
import { imports } from './requirements/import.js';
import { ingress } from './requirements/ingress.js';
import { mcp } from './requirements/mcp.js';
import { mcpskill } from './requirements/mcpskill.js';
import { nats } from './requirements/nats.js';
import { own } from './requirements/own.js';
import { perm } from './requirements/perm.js';
import { plugin } from './requirements/plugin.js';
import { session } from './requirements/session.js';
import { skill } from './requirements/skill.js';
import { snap } from './requirements/snap.js';
import { sub } from './requirements/sub.js';
import { tool } from './requirements/tool.js';

/** The areas in reading order, each a table of requirements. */
export const areas = { own, tool, sub, perm, exec, mcp, skill, imports, plugin, snap, session, ingress, mcpskill, acp, nats } as const;

/** Everything that Ambit must do. `npm run requirements` says how much of it the tests have shown. */
export const requirements = {
  ...own,
  ...tool,
  ...sub,
  ...perm,
  ...exec,
  ...mcp,
  ...skill,
  ...imports,
  ...plugin,
  ...snap,
  ...session,
  ...ingress,
  ...mcpskill,
  ...acp,
  ...nats,
} as const;

export type RequirementId = keyof typeof requirements;

/** `R-TOOL-9#2`: one clause that exists. The compiler refuses a citation of any other. */
export type ClauseId = { [Id in RequirementId]: `${Id}#${keyof (typeof requirements)[Id]['clauses'] & number}` }[RequirementId];

/** The clauses of one requirement, in order. */
export function clausesOf(id: RequirementId): ClauseId[] {
  return Object.keys(requirements[id].clauses).map((number) => `${id}#${number}` as ClauseId);
}
