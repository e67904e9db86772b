import { byCodeUnit } from './canonical.js';
import type { CompositionInput, EffectiveSkill, ReasonCode } from './compose-input.js';
import type { Plugins } from './compose-plugins.js';
import type { Ledger } from './ledger.js';
import { allows, type CataloguePolicy } from './policy.js';
import type { SnapshotRecord, SnapshotSkill } from './snapshot.js';

interface Context {
  readonly policy: CataloguePolicy;
  readonly ledger: Ledger;
  readonly plugins: Plugins;
  readonly servers: SnapshotRecord['servers'];
  readonly input: CompositionInput;
}

const candidateOf = (skill: EffectiveSkill) => ({
  kind: 'skill' as const,
  name: skill.name,
  owner: skill.owner,
  slot: `${skill.owner}/skills/${skill.serverId ?? ''}${skill.name}`,
});
const NAME_CHARACTERS = 200;
const RANK = { owned: 0, plugin: 1, builtin: 2, mcp: 3 } as const;

/** Which skills are effective: enabled, allowed by the policy and selected by the session. An owned skill wins over a plugin's of the same name. */
export function composeSkills(skills: readonly EffectiveSkill[], context: Context): SnapshotSkill[] {
  const { ledger, input } = context;
  const allowed = skills.filter((skill) => {
    const refusal = refusalOf(skill, context);
    if (refusal !== null) ledger.out(candidateOf(skill), refusal.code, refusal.detail);
    return refusal === null;
  });
  const byName = new Map<string, EffectiveSkill[]>();
  for (const skill of withNames(allowed, skills, context.servers)) byName.set(skill.name, [...(byName.get(skill.name) ?? []), skill]);
  const effective = [...byName.values()].flatMap((rivals) => winner(rivals, ledger) ?? []);
  const result = effective.flatMap((skill) => {
    const filters = ledger.filter(candidateOf(skill), skill);
    if (filters === null) return [];
    ledger.in(candidateOf(skill), `${skill.origin}, enabled and selected`, filters);
    const scripts = [...(skill.scripts ?? [])].sort(byCodeUnit);
    const { name, origin, owner, digest, description, serverId, uri } = skill;
    const mcp = serverId === undefined || uri === undefined ? {} : { mcp: { serverId, uri } };
    return [{ name, origin, owner, digest, description, ...mcp, ...(scripts.length === 0 ? {} : { scripts }) }];
  });
  noteUnknown(skills, { ledger, selected: input.session.selectedSkills ?? [] });
  return result.sort((left, right) => byCodeUnit(left.name, right.name));
}

function refusalOf(
  skill: EffectiveSkill,
  { policy, plugins, servers, input }: Context,
): { readonly code: ReasonCode; readonly detail: string } | null {
  if (!input.switches.skills) return { code: 'SWITCHED_OFF', detail: 'skills are switched off' };
  if (input.agent.kind === 'acp') return { code: 'AGENT_KIND', detail: 'an ACP agent sees MCP tools only' };
  if (skill.origin === 'mcp' && !input.switches.mcpSkills)
    return { code: 'SWITCHED_OFF', detail: 'skills of MCP servers are switched off' };
  const plugin = plugins.refusal(skill.owner);
  if (plugin !== null) return plugin;
  if (skill.origin === 'mcp' && !servers.some((server) => server.serverId === skill.serverId))
    return { code: 'SERVER_NOT_ALLOWED', detail: 'its server is not part of this run' };
  if (!skill.enabled) return { code: 'SKILL_DISABLED', detail: 'a person disabled it' };
  if (skill.origin === 'mcp') return serverSkillRefusal(skill, { policy, servers });
  if (!allows(policy.skills, skill.name)) return { code: 'SKILL_NOT_ALLOWED', detail: 'not in the policy’s skills' };
  if (!allows(input.session.selectedSkills === null ? null : [...input.session.selectedSkills], skill.name))
    return { code: 'SKILL_NOT_SELECTED', detail: 'the session did not select it' };
  return null;
}

/** A server's skill follows the policy for its server and the policy's skills; a session selects among owned ones alone. */
function serverSkillRefusal(
  skill: EffectiveSkill,
  { policy, servers }: Pick<Context, 'policy' | 'servers'>,
): { readonly code: ReasonCode; readonly detail: string } | null {
  if (skill.modelInvocable === false) return { code: 'SKILL_DISABLED', detail: 'its server lets no model use it' };
  return allows(policy.skills, skill.name, qualified(skill, servers))
    ? null
    : { code: 'SKILL_NOT_ALLOWED', detail: 'not in the policy’s skills' };
}

const slugOf = ({ serverId }: EffectiveSkill, servers: Context['servers']): string =>
  servers.find((server) => server.serverId === serverId)?.slug ?? '';
const qualified = (skill: EffectiveSkill, servers: Context['servers']): string => `${slugOf(skill, servers)}:${skill.name}`;

/** A server's skill has its own name unless another has it too: then its server's stands before it, and where that is not enough its whole path. Local names stay. */
function withNames(allowed: readonly EffectiveSkill[], all: readonly EffectiveSkill[], servers: Context['servers']): EffectiveSkill[] {
  const local = new Set(all.filter(({ origin }) => origin !== 'mcp').map(({ name }) => name));
  const times = new Map<string, number>();
  const count = (name: string): void => void times.set(name, (times.get(name) ?? 0) + 1);
  const remote = allowed.filter(({ origin }) => origin === 'mcp');
  for (const skill of remote) {
    count(skill.name);
    count(qualified(skill, servers));
  }
  return allowed.map((skill) => {
    if (skill.origin !== 'mcp' || (!local.has(skill.name) && times.get(skill.name) === 1)) return skill;
    const longer = qualified(skill, servers);
    const name = times.get(longer) === 1 ? longer : `${slugOf(skill, servers)}:${skill.path ?? skill.name}`.slice(0, NAME_CHARACTERS);
    return { ...skill, name };
  });
}

function winner(rivals: readonly EffectiveSkill[], ledger: Ledger): EffectiveSkill | null {
  const best = Math.min(...rivals.map((skill) => RANK[skill.origin]));
  const first = rivals.filter((skill) => RANK[skill.origin] === best);
  const chosen = first.length === 1 ? (first[0] ?? null) : null;
  for (const skill of rivals) {
    if (skill === chosen) continue;
    ledger.out(
      candidateOf(skill),
      'DUPLICATE_NAME',
      chosen === null ? 'several owners offer a skill of this name, and none of them wins' : `the ${chosen.origin} skill of this name wins`,
    );
  }
  return chosen;
}

/** A selected name that nothing offers stays selected, and is only without effect: that must be seen. */
function noteUnknown(
  skills: readonly EffectiveSkill[],
  { ledger, selected }: { readonly ledger: Ledger; readonly selected: readonly string[] },
): void {
  const known = new Set(skills.map((skill) => skill.name));
  for (const name of new Set(selected)) {
    if (!known.has(name))
      ledger.out(
        { kind: 'skill', name, owner: 'user', slot: `user/skills/${name}` },
        'SKILL_UNKNOWN',
        'selected by the session, but this agent has no such skill',
      );
  }
}
