import {
  decidePermission,
  reservedNameOf,
  type Composition,
  type CompositionReason as Found,
  type SnapshotRecord,
  type SnapshotTool,
} from '@ambit/capability';
import type { Agent, Explanation, PermissionMode, ServerHead } from '@ambit/contracts';

export interface Question {
  readonly kind: 'tool' | 'skill';
  readonly name: string;
  readonly agent: Agent;
  readonly ancestors: readonly Agent[];
  readonly composition: Composition;
  readonly servers: readonly ServerHead[];
  readonly session: {
    readonly id: string;
    readonly mode: PermissionMode;
    /** What its newest run was given; null where it had none. */
    readonly given: { readonly fingerprint: string; readonly record: SnapshotRecord } | null;
    /** Owners taken away since. */
    readonly revoked: readonly string[];
  } | null;
}

type Link = Explanation['chain'][number];
const link = (step: string, verdict: Link['verdict'], [code, detail]: readonly [string, string]): Link => ({
  step,
  verdict,
  code: code.slice(0, 60),
  detail: detail.slice(0, 1_000),
});

/** The whole chain for one tool or skill: how it got in and what happens when it is called, or the first reason it is absent. */
export function explainCapability(question: Question): Explanation {
  const { kind, name, agent, session, composition } = question;
  const reasons = composition.reasons.filter((reason) => isAbout(reason, question));
  const found = reasons.find((reason) => reason.included) ?? reasons[0];
  const chain = [
    agentLink(agent),
    ...sourceLinks(composition),
    ...(found === undefined ? [absentLink(kind, name)] : candidateLinks(found, question)),
    ...sessionLinks(question),
  ];
  const failed = chain.find(({ verdict }) => verdict === 'fail');
  const isGiven = session === null || session.given === null ? found?.included === true : includes(session.given.record, question);
  return {
    kind,
    name,
    visible: isGiven && failed === undefined,
    summary: summaryOf(question, { failed, last: chain.at(-1) }),
    sessionId: session?.id ?? null,
    agentId: agent.id,
    fingerprint: session?.given?.fingerprint ?? null,
    policyVersion: agent.policyVersion,
    chain: chain.slice(0, 50),
    reasons: reasons.slice(0, 50),
  };
}

/** By the name a run sees, or by the name its owner registered. */
function isAbout(reason: Found, { kind, name }: Question): boolean {
  const kinds = kind === 'tool' ? ['tool', 'alias'] : ['skill'];
  return kinds.includes(reason.kind) && (reason.name === name || reason.slot.endsWith(`/${name}`));
}

const agentLink = ({ id, enabled, version, policyVersion }: Agent): Link =>
  enabled
    ? link('agent', 'pass', ['ENABLED', `${id}, version ${version}, policy version ${policyVersion}`])
    : link('agent', 'fail', ['AGENT_DISABLED', `${id} is switched off`]);

/** A source that did not answer is worth knowing whatever else is found. */
const sourceLinks = ({ reasons }: Composition): Link[] =>
  reasons
    .filter(({ kind, included }) => kind === 'source' && !included)
    .map(({ name, code, detail }) => link(`source ${name}`, 'info', [code, detail]));

const absentLink = (kind: string, name: string): Link =>
  link('registered', 'fail', ['NOT_REGISTERED', `no owner offers a ${kind} named ${name} to this agent`]);

function candidateLinks(found: Found, question: Question): Link[] {
  const { kind, name, composition } = question;
  const reserved = reservedNameOf(name);
  const links = [
    link('owner', 'info', ['OWNER', found.owner]),
    link('slot', 'info', ['SLOT', found.slot]),
    link('source', 'info', ['SOURCE', sourceOf(found.owner, composition)]),
  ];
  if (kind === 'tool')
    links.push(
      link(
        'reserved',
        'info',
        reserved === null ? ['NOT_RESERVED', 'no built-in has this name'] : ['RESERVED', `${reserved} belongs to the platform`],
      ),
    );
  // What was refused before its filters were asked has no verdict of theirs.
  if (found.included || found.filters.length > 0) for (const name of FILTERS) links.push(filterLink(name, found));
  links.push(link('composition', found.included ? 'pass' : 'fail', [found.code, found.detail]));
  const tool = kind === 'tool' ? composition.record.tools.find((one) => one.name === found.name) : undefined;
  return tool === undefined || !found.included ? links : [...links, ...toolLinks(tool, question)];
}

const FILTERS = ['platforms', 'scopes', 'permissions'] as const;

function filterLink(name: (typeof FILTERS)[number], { code, filters }: Found): Link {
  const asked = filters.find((filter) => filter.name === name);
  if (asked === undefined) return link(`filter ${name}`, 'info', ['ABSENT', 'demands nothing']);
  const fails = asked.verdict === 'fail';
  return link(`filter ${name}`, fails ? 'fail' : 'pass', [fails ? code : 'PASSES', asked.detail ?? '']);
}

/** Where it came from, as the host recorded it; nothing that an author says of itself counts. */
function sourceOf(owner: string, { reasons }: Composition): string {
  const [kind, id = ''] = owner.split(':');
  if (kind === 'plugin')
    return `the plugin ${id}, ${reasons.find((reason) => reason.kind === 'plugin' && reason.name === id)?.detail ?? 'not installed'}`;
  if (kind === 'worker') return `brought by a worker of ${id}`;
  return kind === 'builtin' ? 'part of the platform' : 'configured by a person';
}

function toolLinks(tool: SnapshotTool, question: Question): Link[] {
  const { target } = tool;
  const links = [link('exposure', 'pass', ['EXPOSURE', tool.exposure])];
  if (target.kind === 'mcp') {
    const server = question.servers.find(({ serverId }) => serverId === target.serverId);
    links.push(
      link('pin', 'info', [
        'PINNED',
        `${target.tool} of server ${server?.slug ?? target.serverId}, generation ${target.configGeneration}, binding ${target.bindingHash.slice(0, 12)}`,
      ]),
    );
    links.push(
      link('health', 'info', [
        server?.state ?? 'unknown',
        server?.reason ?? (server?.stale === true ? 'the last good list is served' : 'as the broker last saw it'),
      ]),
    );
  } else if (target.kind === 'worker')
    links.push(link('pin', 'info', ['PINNED', `${target.tool} of the agent’s worker, toolset ${target.toolsetDigest.slice(0, 12)}`]));
  else links.push(link('pin', 'info', ['PINNED', `built-in ${target.id}, version ${target.version}`]));
  return [...links, permissionLink(tool, question)];
}

/** What a call without arguments would meet; a rule with conditions may say otherwise of others. */
function permissionLink(tool: SnapshotTool, { agent, ancestors, session }: Question): Link {
  const permission = decidePermission({
    chain: [agent, ...ancestors].map(({ id, policy }) => ({ agentId: id, policy })),
    mode: session?.mode ?? agent.policy.mode,
    facts: {
      names: [...new Set([tool.name, tool.qualifiedName])],
      arguments: {},
      effect: tool.effect,
      access: tool.access,
      requiresConfirmation: false,
      pluginVerdict: tool.pluginVerdict ?? null,
      outsideWorkspace: false,
      protectedPath: false,
      command: null,
    },
  });
  return link('permission', permission.decision === 'deny' ? 'fail' : 'pass', [
    `CALL_${permission.decision.toUpperCase()}`,
    permission.rule,
  ]);
}

function includes(record: SnapshotRecord, { kind, name }: Question): boolean {
  return kind === 'tool'
    ? record.tools.some((tool) => tool.name === name || tool.qualifiedName === name)
    : record.skills.some((skill) => skill.name === name);
}

function sessionLinks(question: Question): Link[] {
  const { session, name, kind } = question;
  if (session === null || session.given === null) return [];
  const { fingerprint, record } = session.given;
  const isIn = includes(record, question);
  const links = [
    link(
      'snapshot',
      isIn ? 'pass' : 'fail',
      isIn
        ? ['IN_SNAPSHOT', fingerprint]
        : ['NOT_IN_SNAPSHOT', `${fingerprint} of the session’s newest run does not have it; a new run sees what is there now`],
    ),
  ];
  const owner =
    kind === 'tool'
      ? record.tools.find((tool) => tool.name === name || tool.qualifiedName === name)?.owner
      : record.skills.find((skill) => skill.name === name)?.owner;
  if (owner === undefined) return links;
  return [
    ...links,
    session.revoked.includes(owner)
      ? link('fence', 'fail', ['TOOL_GONE', `something of ${owner} was taken away since the run was given its snapshot`])
      : link('fence', 'pass', ['FENCE_UNMOVED', `nothing of ${owner} was taken away since`]),
  ];
}

function summaryOf(
  { kind, name, agent }: Question,
  { failed, last }: { readonly failed: Link | undefined; readonly last: Link | undefined },
): string {
  if (failed !== undefined) return `The ${kind} ${name} is not available to ${agent.id}: ${failed.detail} (${failed.code}).`;
  return `${agent.id} sees the ${kind} ${name}${last === undefined ? '' : `; ${last.step}: ${last.detail}`}.`;
}
