import { digestOf } from '@ambit/capability';
import type { Authority, IntendedCall } from '@ambit/contracts';

/** Where the calls of a batch stand in the run's stored step; or what is wrong, and whether a newer authority might say otherwise. */
export type StepAnswer =
  | { readonly kind: 'stored'; readonly positions: readonly number[]; readonly callsBefore: number; readonly cut: boolean }
  | { readonly kind: 'unknown'; readonly reason: string };

/** The digest that a stored step holds of each of its calls. */
export function callDigest(call: Pick<IntendedCall, 'name' | 'arguments'>): string {
  return digestOf({ arguments: call.arguments, name: call.name });
}

type Stored = NonNullable<Authority['step']>;
type Places = ReadonlyMap<string, { readonly position: number; readonly digest: string }>;
const known = new WeakMap<Stored, Places>();

/** Where each call of a stored step stands; made once for a step, however many batches ask. */
function placesOf(stored: Stored): Places {
  let places = known.get(stored);
  if (places === undefined) {
    places = new Map(stored.calls.map((call, position) => [call.callId, { position, digest: call.digest }]));
    known.set(stored, places);
  }
  return places;
}

/** Finds a batch's calls in the stored step: only what was stored is executed, with the arguments that were stored. */
export function findInStep(stored: Authority['step'], step: number, calls: readonly IntendedCall[]): StepAnswer {
  if (stored === null || stored.step !== step)
    return { kind: 'unknown', reason: `step ${step} is not the stored step of this run; store it with run.step first` };
  const places = placesOf(stored);
  const positions: number[] = [];
  for (const call of calls) {
    const place = places.get(call.callId);
    if (place === undefined) return { kind: 'unknown', reason: 'a call is not in the stored step' };
    if (place.digest !== callDigest(call))
      return { kind: 'unknown', reason: 'a call has another name or other arguments than in the stored step' };
    positions.push(place.position);
  }
  if (new Set(positions).size !== positions.length) return { kind: 'unknown', reason: 'a call stands twice in the batch' };
  return { kind: 'stored', positions, callsBefore: stored.callsBefore, cut: stored.cut === true };
}
