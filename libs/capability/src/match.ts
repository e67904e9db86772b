import type { MatchRule } from '@ambit/contracts';

export const DEFAULT_AGENT = 'default';

type Media = NonNullable<MatchRule['hasMedia']>[number];

/** What of an inbound message the rules read. */
export interface MessageFacts {
  readonly adapter: string;
  /** Every name of the endpoint that received it. */
  readonly endpoints: readonly string[];
  /** @default 'private' */
  readonly scene?: NonNullable<MatchRule['scene']>;
  readonly sceneId: string;
  /** The kinds of content it has; a message of text alone has `text` alone. */
  readonly media: readonly Media[];
  readonly content: string;
}

export interface Matching {
  readonly id: string;
  /** Alternatives. */
  readonly match: readonly MatchRule[];
  /** One that is switched off is passed over, as if it were not there. @default true */
  readonly enabled?: boolean;
}

export type Binding =
  | {
      readonly agentId: string;
      /** Index of the rule that matched; null = the default agent took the rest. */ readonly rule: number | null;
    }
  | { readonly code: 'NO_AGENT' }
  | { readonly code: 'AGENT_AMBIGUOUS'; readonly agents: readonly string[] };

/** The agent that a message reaches: the one whose rules match, else the agent named `default`, else none. Two that match are an error. */
export function matchAgent(agents: readonly Matching[], message: MessageFacts): Binding {
  const present = agents.filter(({ enabled }) => enabled !== false);
  const hits = present
    .filter((agent) => agent.id !== DEFAULT_AGENT)
    .flatMap((agent) => {
      const rule = agent.match.findIndex((candidate) => ruleMatches(candidate, message));
      return rule < 0 ? [] : [{ agentId: agent.id, rule }];
    });
  const [hit] = hits;
  if (hits.length > 1) return { code: 'AGENT_AMBIGUOUS', agents: hits.map(({ agentId }) => agentId).sort() };
  if (hit !== undefined) return hit;
  return present.some((agent) => agent.id === DEFAULT_AGENT) ? { agentId: DEFAULT_AGENT, rule: null } : { code: 'NO_AGENT' };
}

/** Tells whether every field of a rule holds for a message; a rule without any field holds for none. */
export function ruleMatches(rule: MatchRule, message: MessageFacts): boolean {
  const { adapter, endpoint, scene, sceneId, hasMedia, contentContains } = rule;
  if ([adapter, endpoint, scene, sceneId, hasMedia, contentContains].every((field) => field === undefined)) return false;
  return (
    (adapter === undefined || adapter === message.adapter) &&
    (endpoint === undefined || message.endpoints.includes(endpoint)) &&
    (scene === undefined || scene === (message.scene ?? 'private')) &&
    (sceneId === undefined || sceneId === message.sceneId) &&
    (hasMedia === undefined || mediaMatch(hasMedia, message.media)) &&
    (contentContains === undefined || message.content.toLowerCase().includes(contentContains.toLowerCase()))
  );
}

/** `[text]` alone means nothing but text; any other list means at least one of its kinds; an empty one means no message at all. */
function mediaMatch(wanted: readonly Media[], media: readonly Media[]): boolean {
  if (isTextAlone(wanted)) return isTextAlone(media);
  return wanted.some((kind) => media.includes(kind));
}

const isTextAlone = (kinds: readonly Media[]) => kinds.length > 0 && kinds.every((kind) => kind === 'text');

export interface Tie {
  readonly agents: readonly [string, string];
  readonly rules: readonly [number, number];
}

/**
 * Pairs of agents with rules that one message could both match: refused when they are applied, since neither would win. One that is switched
 * off counts too, so that switching it on again is never refused.
 */
export function findTies(agents: readonly Matching[]): Tie[] {
  const others = agents.filter((agent) => agent.id !== DEFAULT_AGENT);
  const ties: Tie[] = [];
  for (const [index, left] of others.entries()) {
    for (const right of others.slice(index + 1)) {
      const tie = tieOf(left, right);
      if (tie !== null) ties.push(tie);
    }
  }
  return ties;
}

function tieOf(left: Matching, right: Matching): Tie | null {
  for (const [leftRule, one] of left.match.entries()) {
    const rightRule = right.match.findIndex((other) => mayBothMatch(one, other));
    if (rightRule >= 0) return { agents: [left.id, right.id], rules: [leftRule, rightRule] };
  }
  return null;
}

/** Whether any message could match both. An endpoint has several names and a text holds many words, so those two never keep rules apart. */
function mayBothMatch(left: MatchRule, right: MatchRule): boolean {
  const apart = (one: string | undefined, other: string | undefined) => one !== undefined && other !== undefined && one !== other;
  if (apart(left.adapter, right.adapter) || apart(left.scene, right.scene) || apart(left.sceneId, right.sceneId)) return false;
  if (left.hasMedia?.length === 0 || right.hasMedia?.length === 0) return false;
  if (left.hasMedia === undefined || right.hasMedia === undefined) return true;
  if (isTextAlone(left.hasMedia)) return right.hasMedia.includes('text');
  return !isTextAlone(right.hasMedia) || left.hasMedia.includes('text');
}
