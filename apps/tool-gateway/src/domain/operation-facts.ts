import { Abort, Claim, journalSubject, Outcome } from '@ambit/contracts';

export type OperationFact =
  | { readonly kind: 'claim'; readonly claim: Claim }
  | { readonly kind: 'outcome'; readonly outcome: Outcome }
  | { readonly kind: 'abort'; readonly operationId: string };

/** Reads the journal's facts of operations off their subjects. */
export const operationFacts = {
  all: journalSubject.allOperations,
  /** Undefined for a message that is none of these, or not in their shape. */
  read(subject: string, text: string): OperationFact | undefined {
    let json: unknown;
    try {
      json = JSON.parse(text);
    } catch {
      return undefined;
    }
    switch (subject.slice(subject.lastIndexOf('.') + 1)) {
      case 'claim': {
        const claim = Claim.safeParse(json);
        return claim.success ? { kind: 'claim', claim: claim.data } : undefined;
      }
      case 'outcome': {
        const outcome = Outcome.safeParse(json);
        return outcome.success ? { kind: 'outcome', outcome: outcome.data } : undefined;
      }
      case 'abort': {
        const abort = Abort.safeParse(json);
        return abort.success ? { kind: 'abort', operationId: abort.data.operationId } : undefined;
      }
      default:
        return undefined;
    }
  },
};
