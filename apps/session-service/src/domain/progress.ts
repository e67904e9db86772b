import { digestOf, sha256Hex } from '@ambit/capability';
import type { CallResult } from '@ambit/contracts';
import type { StoredStep } from './step.js';
import type { NewEntry, OfRun } from './tape.js';

/** Equal rounds in a row after which the model is told, and after which its run ends. */
export const CORRECT_AFTER = 2;
export const STOP_AFTER = 4;

const CORRECTION =
  'The last two rounds made the same calls and got the same results. Going on like this leads nowhere: do something else, ask the person, or say what stands in the way.';

/** How many of the newest steps, the newest first, made the same calls in the same order. */
export function equalSteps(steps: readonly StoredStep[]): number {
  const newest = steps[0];
  if (newest === undefined || newest.calls.length === 0) return 0;
  const callsOf = ({ calls }: StoredStep): string => calls.map(({ digest }) => digest).join(' ');
  const other = steps.findIndex((step) => step.cut || callsOf(step) !== callsOf(newest));
  return other < 0 ? steps.length : other;
}

/** Names what a round asked for and got, whatever ids its calls had; undefined where a call has no result yet. 24 hexadecimal digits. */
export function roundHash({ calls }: StoredStep, results: readonly CallResult[]): string | undefined {
  const byCall = new Map(results.map((result) => [result.callId, result]));
  const round: unknown[] = [];
  for (const { callId, digest } of calls) {
    const result = byCall.get(callId);
    if (result === undefined) return undefined;
    const { status, content, structuredContent, artifact, fault } = result;
    round.push([digest, status, content ?? null, structuredContent ?? null, artifact?.digest ?? null, fault?.code ?? null]);
  }
  return sha256Hex(digestOf(round)).slice(0, 24);
}

/** What is to be done after so many equal rounds in a row, by their hashes, the newest first. */
export function progressVerdict(rounds: readonly (string | undefined)[]): 'go-on' | 'correct' | 'stop' {
  const newest = rounds[0];
  if (newest === undefined) return 'go-on';
  const other = rounds.findIndex((round) => round !== newest);
  const equal = other < 0 ? rounds.length : other;
  if (equal >= STOP_AFTER) return 'stop';
  return equal >= CORRECT_AFTER ? 'correct' : 'go-on';
}

/** What the platform says to a model that goes round in a circle; models of every kind read what a user says. */
export function correctionEntry(step: number, run: OfRun): NewEntry {
  return {
    ...run,
    kind: 'message',
    step,
    callId: null,
    role: 'user',
    content: { content: [{ type: 'text', text: CORRECTION }], by: 'platform' },
    text: CORRECTION,
  };
}
