import { digestOf, NotCanonical } from '@ambit/capability';
import type { IntendedCall } from '@ambit/contracts';

export interface StepDigest {
  readonly callId: string;
  readonly digest: string;
}
export interface StoredStep {
  readonly step: number;
  readonly callsBefore: number;
  readonly calls: readonly StepDigest[];
}

/** What the gateway compares a batch with: each call's name and arguments as the model wrote them. Undefined where a text has no digest. */
export function digestsOf(calls: readonly IntendedCall[]): StepDigest[] | undefined {
  try {
    return calls.map((call) => ({ callId: call.callId, digest: digestOf({ arguments: call.arguments, name: call.name }) }));
  } catch (error) {
    if (error instanceof NotCanonical) return undefined;
    throw error;
  }
}

export const haveRepeatedIds = (calls: readonly IntendedCall[]): boolean =>
  new Set(calls.map(({ callId }) => callId)).size !== calls.length;

/** The number the next step must have: steps go on across the runs of one origin. */
export const nextStep = (newest: StoredStep | undefined): number => (newest === undefined ? 0 : newest.step + 1);
export const callsBefore = (newest: StoredStep | undefined): number =>
  newest === undefined ? 0 : newest.callsBefore + newest.calls.length;
