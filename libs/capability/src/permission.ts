import type { PermissionMode, Policy, Rule, ToolEffect } from '@ambit/contracts';
import { isObject } from './arguments.js';
import { commandRisk, greaterRisk, type Risk } from './command-risk.js';
import { narrowerMode } from './policy.js';
import { evaluateRules, type RuleSubject } from './rules.js';
import type { Access } from './snapshot.js';

/** How long a decision may be waited for where its rule says nothing. */
export const INTERACTION_MS = 24 * 3_600_000;

/** What a call would do, as far as it was found out without any effect. */
export interface CallFacts extends RuleSubject {
  readonly access: Access;
  readonly effect: ToolEffect;
  /** The tool asks a person every time, in every mode and whatever a rule allows. */
  readonly requiresConfirmation: boolean;
  /** What the plugin that owns the server declared of this tool; its `allow` grants nothing. */
  readonly pluginVerdict: 'allow' | 'ask' | 'deny' | null;
  /** Of a file or command tool: a path, or the folder of the command, lies outside the workspace. */
  readonly outsideWorkspace: boolean;
  /** Of a file or command tool: it touches another agent's private files, which no mode opens. */
  readonly protectedPath: boolean;
  /** Of a command tool: the command as it would run. */
  readonly command: string | null;
}

/** A rating, and in whose words. */
export interface Rating {
  readonly risk: Risk;
  readonly reason: string;
}

/** Rates a call under `auto_approve`; null = no rating could be had, which asks a person. */
export type Reviewer = (facts: CallFacts) => Risk | Rating | null;

/** One policy of the chain: the agent's own first, then each ancestor's. */
export interface ChainLink {
  readonly agentId: string;
  readonly policy: Pick<Policy, 'rules' | 'mode'>;
}

/** What one asking policy wants of the person: all terms of a call must be met by whoever decides it. */
export interface AskTerms {
  readonly agentId: string;
  readonly rule: string;
  readonly approvers: readonly string[];
  readonly not: Rule['not'];
}

export type Permission =
  | { readonly decision: 'allow'; readonly rule: string }
  | { readonly decision: 'deny'; readonly rule: string; readonly agentId: string }
  | {
      readonly decision: 'ask';
      readonly rule: string;
      readonly approvers: readonly string[];
      readonly terms: readonly AskTerms[];
      readonly expiresMs: number;
    };

interface Verdict {
  readonly decision: Rule['decision'];
  readonly text: string;
  readonly rule: Rule | null;
}

const SHELL_ARGUMENTS = ['command', 'cmd', 'script', 'shell'];

/** The reviewer that needs no model: a shell command is rated by its words, a file outside the workspace and a change of settings are high. */
export function ruleBasedReviewer(facts: CallFacts): Risk {
  let risk: Risk = facts.effect === 'read' ? 'low' : 'medium';
  if (facts.protectedPath) risk = 'critical';
  if (facts.access === 'file' && facts.outsideWorkspace) risk = greaterRisk(risk, facts.effect === 'read' ? 'medium' : 'high');
  if (facts.access === 'settings' && facts.effect === 'write') risk = greaterRisk(risk, 'high');
  if (facts.access === 'command')
    risk = greaterRisk(greaterRisk(risk, commandRisk(facts.command ?? '')), facts.outsideWorkspace ? 'high' : 'low');
  for (const name of SHELL_ARGUMENTS) {
    const value = isObject(facts.arguments) ? facts.arguments[name] : undefined;
    if (facts.access !== 'command' && facts.effect === 'write' && typeof value === 'string') risk = greaterRisk(risk, commandRisk(value));
  }
  return risk;
}

/** What the permission mode says of a call that no rule matches. */
export function modeVerdict(
  mode: PermissionMode,
  facts: CallFacts,
  review: Reviewer = ruleBasedReviewer,
): { readonly decision: Rule['decision']; readonly text: string } {
  if (facts.protectedPath) return { decision: 'deny', text: 'private files of another agent are closed in every mode' };
  switch (mode) {
    case 'full_access':
      return { decision: 'allow', text: 'mode full_access' };
    case 'auto_approve':
      return reviewed(review(facts));
    case 'default':
      return byDefault(facts);
  }
}

function reviewed(rating: ReturnType<Reviewer>): { readonly decision: Rule['decision']; readonly text: string } {
  if (rating === null) return { decision: 'ask', text: 'mode auto_approve: the reviewer gave no rating' };
  const { risk, reason } = typeof rating === 'string' ? { risk: rating, reason: '' } : rating;
  const text = `mode auto_approve: rated ${risk}${reason === '' ? '' : ` by the reviewer: ${reason}`}`;
  switch (risk) {
    case 'critical':
      return { decision: 'deny', text };
    case 'high':
      return { decision: 'ask', text };
    case 'medium':
    case 'low':
      return { decision: 'allow', text };
  }
}

function byDefault(facts: CallFacts): { readonly decision: Rule['decision']; readonly text: string } {
  const allow = (why: string) => ({ decision: 'allow' as const, text: `mode default: ${why}` });
  const ask = (why: string) => ({ decision: 'ask' as const, text: `mode default: ${why}` });
  switch (facts.access) {
    case 'session':
      return allow('touches this session alone');
    case 'file':
      return facts.outsideWorkspace ? ask('a file outside the workspace') : allow('a file inside the workspace');
    case 'command': {
      const risk = commandRisk(facts.command ?? '');
      if (facts.outsideWorkspace) return ask('a command outside the workspace');
      return risk === 'low' ? allow('a command that only looks') : ask(`a command rated ${risk}`);
    }
    case 'settings':
    case 'mcp':
    case 'delegation':
    case 'other':
      return facts.effect === 'read' ? allow('reads') : ask(`may change something (${facts.access})`);
  }
}

const STRENGTH = { deny: 2, ask: 1, allow: 0 } as const;

/** The verdict of one policy: its strongest rule, else the mode; never weaker than what the tool and its plugin demand. */
function verdictOf(link: ChainLink, facts: CallFacts, options: { readonly mode: PermissionMode; readonly review: Reviewer }): Verdict {
  const matched = evaluateRules(link.policy.rules, facts);
  const mode = () => modeVerdict(narrowerMode(link.policy.mode, options.mode), facts, options.review);
  const verdict: Verdict = matched ?? { ...mode(), rule: null };
  const floor = demanded(facts);
  return floor !== null && STRENGTH[floor.decision] > STRENGTH[verdict.decision] ? floor : verdict;
}

function demanded(facts: CallFacts): Verdict | null {
  if (facts.protectedPath) return { decision: 'deny', text: 'private files of another agent are closed in every mode', rule: null };
  if (facts.pluginVerdict === 'deny') return { decision: 'deny', text: 'the plugin denies this tool', rule: null };
  if (facts.requiresConfirmation) return { decision: 'ask', text: 'the tool requires confirmation', rule: null };
  if (facts.pluginVerdict === 'ask') return { decision: 'ask', text: 'the plugin asks for confirmation', rule: null };
  return null;
}

export interface PermissionQuestion {
  /** The agent's own policy first, then each ancestor's. Empty = the policies could not be read, and nothing is allowed. */
  readonly chain: readonly ChainLink[];
  /** The session's mode; the narrower of it and of every policy's holds. */
  readonly mode: PermissionMode;
  readonly facts: CallFacts;
  /** @default ruleBasedReviewer */
  readonly review?: Reviewer;
}

/** What all policies of the chain say together: the strictest answer. Where several ask, the person must meet the terms of each, within the shortest time. */
export function decidePermission({ chain, mode, facts, review = ruleBasedReviewer }: PermissionQuestion): Permission {
  const narrowest = chain.reduce((narrow, link) => narrowerMode(narrow, link.policy.mode), mode);
  const verdicts = chain.map((link) => ({ link, verdict: verdictOf(link, facts, { mode: narrowest, review }) }));
  const first = verdicts[0];
  if (first === undefined) return { decision: 'deny', rule: 'no policy could be read', agentId: '' };
  const denied = verdicts.find(({ verdict }) => verdict.decision === 'deny');
  if (denied !== undefined) return { decision: 'deny', rule: denied.verdict.text, agentId: denied.link.agentId };
  const asking = verdicts.filter(({ verdict }) => verdict.decision === 'ask');
  const asked = asking[0];
  if (asked === undefined) return { decision: 'allow', rule: first.verdict.text };
  const terms = asking.map(({ link, verdict }) => ({
    agentId: link.agentId,
    rule: verdict.text,
    approvers: verdict.rule?.approvers ?? [],
    not: verdict.rule?.not ?? null,
  }));
  const expiresMs = Math.min(...asking.map(({ verdict }) => verdict.rule?.expiresMs ?? INTERACTION_MS));
  return { decision: 'ask', rule: asked.verdict.text, approvers: asked.verdict.rule?.approvers ?? [], terms, expiresMs };
}

/** Who wants to decide, with the groups the installation knows them to be in. */
export interface Decider {
  readonly id: string;
  readonly groups: readonly string[];
}

/** Whether somebody may decide a call: `needs-role` where the terms name nobody, so a role grant must entitle them. */
export function entitlement(terms: readonly AskTerms[], decider: Decider, requester: string): 'entitled' | 'needs-role' | 'refused' {
  const answers = terms.map((term) => {
    if (term.not === 'requester' && decider.id === requester) return 'refused';
    if (term.approvers.length === 0) return 'needs-role';
    const named = term.approvers.some((name) =>
      name === 'requester' ? decider.id === requester : name === decider.id || decider.groups.includes(name),
    );
    return named ? 'entitled' : 'refused';
  });
  if (answers.length === 0 || answers.includes('refused')) return 'refused';
  return answers.includes('needs-role') ? 'needs-role' : 'entitled';
}
