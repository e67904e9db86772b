import { byCodeUnit } from './canonical.js';
import type { BuiltinRegistration, CompositionInput, ReasonCode, WorkerTool, WorkerToolset } from './compose-input.js';
import type { FilterVerdict } from './filters.js';
import { matchesGlob } from './glob.js';
import type { Candidate, Ledger } from './ledger.js';
import type { CataloguePolicy } from './policy.js';
import { COMMAND_TOOL, registrationProblem, RESERVED_TABLE } from './reserved.js';
import type { SnapshotSkill, SnapshotTool } from './snapshot.js';
import { SUBAGENT_TOOL, type SubagentReason } from './subagents.js';
import { looksQualified, reservedNameOf, TOOL_NAME_MAX } from './tool-name.js';

/** A tool that passed every check of its own, before names are settled among all. The lowest rank has the first right to a name. */
export interface ToolCandidate {
  readonly candidate: Candidate;
  readonly filters: FilterVerdict[];
  readonly rank: number;
  readonly tool: SnapshotTool;
  /** It is there for deferred tools, and with the last of them it goes. */
  readonly needsDeferred?: boolean;
}

interface Context {
  readonly input: CompositionInput;
  readonly policy: CataloguePolicy;
  readonly ledger: Ledger;
}
interface BuiltinContext extends Context {
  readonly skills: readonly SnapshotSkill[];
  readonly subagents: { readonly reason: SubagentReason | null };
}
type Refusal = { readonly code: ReasonCode; readonly detail: string };

/** The platform's own tools that a model may call in this session. */
export function builtinCandidates(registrations: readonly BuiltinRegistration[], context: BuiltinContext): ToolCandidate[] {
  return registrations.flatMap((registration) => {
    const { name, version, exposure, description, inputSchema, outputSchema, effect, access, parallel } = registration;
    const candidate = { kind: 'tool' as const, name, owner: 'builtin', slot: `builtin/tools/${name}` };
    const refusal = builtinRefusal(registration, context);
    if (refusal !== null) {
      context.ledger.out(candidate, refusal.code, refusal.detail);
      return [];
    }
    const filters = context.ledger.filter(candidate, registration);
    if (filters === null) return [];
    const tool: SnapshotTool = {
      name,
      qualifiedName: name,
      exposure,
      description,
      inputSchema,
      outputSchema: outputSchema ?? null,
      effect,
      access,
      parallel: parallel && effect === 'read',
      owner: 'builtin',
      target: { kind: 'builtin', id: name, version },
    };
    return [{ candidate, filters, rank: 0, tool, needsDeferred: registration.needsDeferred === true }];
  });
}

function builtinRefusal(registration: BuiltinRegistration, { input, policy, skills, subagents }: BuiltinContext): Refusal | null {
  const { name, exposure, requiresSkill } = registration;
  const problem = registrationProblem(name, exposure);
  if (problem !== null) return { code: problem, detail: `registered as ${exposure}` };
  if (exposure === 'diagnostic' || exposure === 'runtime-only')
    return { code: 'EXPOSURE_HIDDEN', detail: `${exposure} tools are not for models` };
  if (name === SUBAGENT_TOOL && subagents.reason !== null) return { code: 'SUBAGENT_UNAVAILABLE', detail: subagents.reason };
  if (input.agent.kind === 'acp') return { code: 'AGENT_KIND', detail: 'an ACP agent sees MCP tools only' };
  if (exposure === 'user-configurable' && policy.disabledTools.includes(name))
    return { code: 'TOOL_DISABLED', detail: 'in the policy’s disabled tools' };
  if (registration.needsSkills === true && !input.switches.skills) return { code: 'SWITCHED_OFF', detail: 'skills are switched off' };
  if (registration.needsScripts === true) {
    if (!skills.some(({ scripts }) => scripts !== undefined))
      return { code: 'SCRIPTS_UNAVAILABLE', detail: 'no skill of this run has a script that an administrator enabled' };
    if (!canRunCommands(input)) return { code: 'SCRIPTS_UNAVAILABLE', detail: `no worker of ${input.agent.id} brings ${COMMAND_TOOL}` };
  }
  const active =
    requiresSkill === undefined ||
    // The platform's own skill: one of the same name that somebody else wrote says something else.
    (input.session.activeSkills.includes(requiresSkill) &&
      skills.some((skill) => skill.name === requiresSkill && skill.owner === 'builtin'));
  if (!active) return { code: 'SKILL_NOT_ACTIVE', detail: `needs the skill ${requiresSkill} to be active` };
  return null;
}

/** Whether a worker of the agent could run a command, whether or not its model may call for one itself. */
function canRunCommands({ agent, toolsets }: CompositionInput): boolean {
  return (
    toolsets.state === 'ok' &&
    toolsets.items.some(({ agentId, tools }) => agentId === agent.id && tools.some(({ name }) => name === COMMAND_TOOL))
  );
}

/** The tools of the agent's own worker. They may take the names of workspace tools, and no other built-in name. */
export function workerCandidates(toolsets: readonly WorkerToolset[], context: Context): ToolCandidate[] {
  const own = toolsets.filter((toolset) => toolset.agentId === context.input.agent.id);
  const latest = [...own].sort(
    (left, right) =>
      Number(right.live) - Number(left.live) || (right.epoch ?? 0) - (left.epoch ?? 0) || byCodeUnit(left.digest, right.digest),
  )[0];
  return toolsets.flatMap((toolset) =>
    toolset.tools.flatMap((tool) => {
      const owner = `worker:${toolset.agentId}`;
      const candidate = {
        kind: 'tool' as const,
        name: tool.name,
        owner,
        slot: `${owner}/tools/${toolset.digest}/${tool.name}`,
      };
      const refusal = workerRefusal({ toolset, tool, latest }, context);
      if (refusal !== null) {
        context.ledger.out(candidate, refusal.code, refusal.detail);
        return [];
      }
      const filters = context.ledger.filter(candidate, tool);
      return filters === null ? [] : [{ candidate, filters, rank: 1, tool: workerTool(toolset, tool) }];
    }),
  );
}

function workerTool({ agentId, digest }: WorkerToolset, { effect, access, parallel, ...tool }: WorkerTool): SnapshotTool {
  return {
    name: tool.name,
    qualifiedName: tool.name,
    exposure: 'user-configurable',
    description: tool.description,
    inputSchema: tool.inputSchema,
    outputSchema: tool.outputSchema ?? null,
    effect,
    access,
    parallel: parallel && effect === 'read',
    owner: `worker:${agentId}`,
    target: { kind: 'worker', agentId, toolsetDigest: digest, tool: tool.name },
  };
}

interface WorkerQuestion {
  readonly toolset: WorkerToolset;
  readonly tool: WorkerTool;
  readonly latest: WorkerToolset | undefined;
}

function workerRefusal({ toolset, tool, latest }: WorkerQuestion, { input, policy }: Context): Refusal | null {
  const { name, access } = tool;
  if (toolset.agentId !== input.agent.id) return { code: 'NOT_THIS_AGENT', detail: `brought by a worker of ${toolset.agentId}` };
  if (input.agent.kind === 'acp') return { code: 'AGENT_KIND', detail: 'an ACP agent sees MCP tools only' };
  if (toolset !== latest) return { code: 'SUPERSEDED', detail: 'a newer toolset of this agent is offered' };
  if (access === 'session' || access === 'mcp' || access === 'delegation')
    return { code: 'ACCESS_REFUSED', detail: `a worker’s tool may not claim to reach ${access}` };
  const taken = nameProblem(name);
  if (taken !== null && RESERVED_TABLE.get(name)?.by !== 'workspace') return taken;
  return policy.disabledTools.includes(name) ? { code: 'TOOL_DISABLED', detail: 'in the policy’s disabled tools' } : null;
}

/** Why nothing but the platform, or a server's tool, may have this name; null where it is free. */
export function nameProblem(name: string): Refusal | null {
  const reserved = reservedNameOf(name);
  if (reserved !== null) return { code: 'NAME_RESERVED', detail: `${reserved} is a built-in name` };
  if (looksQualified(name)) return { code: 'NAME_RESERVED', detail: 'mcp__ begins the names of servers’ tools' };
  return name.length <= TOOL_NAME_MAX && /^[A-Za-z0-9_-]+$/.test(name)
    ? null
    : { code: 'SCHEMA_INVALID', detail: 'a tool name has 1 to 64 letters, digits, _ and -' };
}

/** Of a preset's session, the tools that it leaves. What is nobody's to switch stays. */
export function ofPreset(
  candidates: readonly ToolCandidate[],
  { only, ledger }: { readonly only: readonly string[] | undefined; readonly ledger: Ledger },
): readonly ToolCandidate[] {
  if (only === undefined) return candidates;
  return candidates.filter(
    ({ candidate, tool }) =>
      tool.exposure === 'system-model' ||
      only.some((glob) => matchesGlob(glob, tool.name)) ||
      ledger.out(candidate, 'NOT_IN_PRESET', 'the preset that this session works as does not list it'),
  );
}
