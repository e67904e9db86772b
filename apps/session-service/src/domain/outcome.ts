import type { CallResult, Outcome } from '@ambit/contracts';

/** The result that an outcome fact gives its call. */
export function resultOf(callId: string, outcome: Outcome): CallResult {
  return {
    callId,
    status: outcome.status,
    ...(outcome.content === undefined ? {} : { content: outcome.content }),
    ...(outcome.structuredContent === undefined ? {} : { structuredContent: outcome.structuredContent }),
    ...(outcome.artifact === undefined ? {} : { artifact: outcome.artifact }),
    ...(outcome.fault === undefined ? {} : { fault: outcome.fault }),
  };
}
