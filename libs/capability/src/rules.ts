import type { Condition, Rule } from '@ambit/contracts';
import { isObject } from './arguments.js';
import { commandCaught, commandCovered } from './command.js';
import { matchesGlob } from './glob.js';
import { isUnder, pathScope } from './path-scope.js';
import { ruleToDocument } from './policy-document.js';

/** The call that rules are asked about. Every name that the tool goes by is matched: an alias hides nothing from a rule. */
export interface RuleSubject {
  readonly names: readonly string[];
  readonly arguments: Readonly<Record<string, unknown>>;
  /** Of a prepared call: the canonical paths that it touches. */
  readonly paths?: readonly string[] | undefined;
}

/** The rule that decided: its place in the policy and what it says, in the words a person would write. */
export interface RuleVerdict {
  readonly decision: Rule['decision'];
  readonly index: number;
  readonly text: string;
  readonly rule: Rule;
}

const STRENGTH = { deny: 2, ask: 1, allow: 0 } as const;
const TEXT_MAX = 500;

/** What a rule says, as the JSON a person would write; at most 500 characters. */
export function ruleText(rule: Rule): string {
  const text = JSON.stringify(ruleToDocument(rule));
  return text.length <= TEXT_MAX ? text : `${text.slice(0, TEXT_MAX - 1)}…`;
}

/** The strongest rule that matches, the first of several as strong: deny beats ask beats allow, whatever their order. Null: none matches. */
export function evaluateRules(rules: readonly Rule[], subject: RuleSubject): RuleVerdict | null {
  let best: { rule: Rule; index: number } | null = null;
  for (const [index, rule] of rules.entries()) {
    if (best !== null && STRENGTH[rule.decision] <= STRENGTH[best.rule.decision]) continue;
    if (matchesRule(rule, subject)) best = { rule, index };
  }
  return best === null ? null : { decision: best.rule.decision, index: best.index, text: ruleText(best.rule), rule: best.rule };
}

/** Tells whether a rule's glob and all of its conditions hold for a call. */
export function matchesRule(rule: Rule, subject: RuleSubject): boolean {
  if (!subject.names.some((name) => matchesGlob(rule.tool, name))) return false;
  return Object.entries(rule.when).every(([path, wanted]) => {
    const actual = argumentAt(subject.arguments, path);
    if (!isObject(wanted)) return Array.isArray(wanted) ? wanted.some((one) => one === actual) : wanted === actual;
    return holds(wanted, { decision: rule.decision, actual, paths: subject.paths });
  });
}

/** An allowing rule has to be sure of the whole; the others hold already where they may be meant. */
function holds(
  wanted: Extract<Condition, object>,
  { decision, actual, paths }: { readonly decision: Rule['decision']; readonly actual: unknown; readonly paths: RuleSubject['paths'] },
): boolean {
  if (typeof actual !== 'string') return false;
  if ('begins' in wanted) return decision === 'allow' ? commandCovered(actual, wanted.begins) : commandCaught(actual, wanted.begins);
  if (!('under' in wanted)) return false;
  const touched = paths === undefined || paths.length === 0 ? [actual] : paths;
  if (decision === 'allow') return touched.every((path) => isUnder(path, wanted.under));
  return touched.some((path) => pathScope(path) !== 'inside' || isUnder(path, wanted.under));
}

/** The argument at a dotted path through objects; undefined where there is none. Inherited properties and lists are never looked into. */
export function argumentAt(value: unknown, path: string): unknown {
  let found = value;
  for (const name of path.split('.')) {
    if (!isObject(found) || !Object.hasOwn(found, name)) return undefined;
    found = found[name];
  }
  return found;
}
