import type { Review, Target } from '@ambit/contracts';
import { digestOf } from './canonical.js';
import { greaterRisk } from './command-risk.js';
import { ruleBasedReviewer, type CallFacts, type Rating, type Reviewer } from './permission.js';

const REASON_MAX = 300;

/** The one call with the one set of arguments that a proposal is about. */
export interface ReviewedAction {
  readonly operationId: string;
  readonly sessionId: string;
  readonly tool: string;
  readonly target: Target;
  readonly argumentsHash: string;
}

/** Names an action, 64 hexadecimal digits: a proposal for another call, target or arguments carries another. */
export function actionHash({ operationId, sessionId, tool, target, argumentsHash }: ReviewedAction): string {
  return digestOf([operationId, sessionId, tool, target, argumentsHash]);
}

/**
 * Whether an outside reviewer is asked: only about what the rules' own rating would let pass although it changes something. What is refused or asked
 * anyhow needs no second opinion, and no opinion makes it less.
 */
export function wantsReview(facts: CallFacts): boolean {
  return ruleBasedReviewer(facts) === 'medium';
}

/** Rates by the rules and by what was proposed for exactly this action, whichever is greater. No proposal, or one for another action, is no rating. */
export function reviewerOf(proposal: Review | null | undefined, action: () => string): Reviewer {
  return (facts): ReturnType<Reviewer> => {
    const rules = ruleBasedReviewer(facts);
    if (!wantsReview(facts)) return rules;
    if (proposal === null || proposal === undefined || proposal.actionHash !== action()) return null;
    const rating: Rating = { risk: greaterRisk(rules, proposal.risk), reason: proposal.reason.slice(0, REASON_MAX) };
    return rating;
  };
}
