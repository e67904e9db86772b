import { journalSubject, type Claim, type Outcome } from '@ambit/contracts';

export type OperationFact =
  | { readonly kind: 'claim'; readonly claim: Claim }
  | { readonly kind: 'outcome'; readonly outcome: Outcome }
  | { readonly kind: 'abort'; readonly operationId: string };

/** Which fact a message of the journal holds, read off its subject. */
export const operationFacts = {
  all: journalSubject.allOperations,
  /** Undefined for a subject that is no operation's. */
  place(subject: string): { readonly originRunId: string; readonly operationId: string; readonly kind: OperationFact['kind'] } | undefined {
    const [originRunId, operationId, kind] = subject.split('.').slice(-3);
    if (originRunId === undefined || operationId === undefined) return undefined;
    return kind === 'claim' || kind === 'outcome' || kind === 'abort' ? { originRunId, operationId, kind } : undefined;
  },
};
