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
  /** The model's output was cut off: none of the calls is executed. */
  readonly cut: boolean;
}

/** What model APIs say when they stopped at a limit of theirs and not where the model was done. */
const CUT_OFF: ReadonlySet<string> = new Set([
  'max_tokens',
  'length',
  'max_output_tokens',
  'max_completion_tokens',
  'model_context_window_exceeded',
]);

/** Whether a step's calls may be incomplete: its last one may have lost its end, and what it was meant to do is a guess. */
export const isCutOff = (stop: string | null | undefined): boolean => CUT_OFF.has((stop ?? '').toLowerCase().replaceAll('-', '_'));

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
  newest === undefined ? 0 : newest.callsBefore + (newest.cut ? 0 : newest.calls.length);
