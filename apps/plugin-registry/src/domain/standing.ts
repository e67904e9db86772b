/** A package is begun so often without an end being heard of; then it is left alone until a person says otherwise. */
export const UNFINISHED_MAX = 3;

export interface Standing {
  readonly state: string;
  /** What a person chose. */
  readonly wanted: string;
  /** Why its package cannot work here; null where it can. */
  readonly problem: string | null;
  /** Exactly this package failed here before, and is tried again only when a person says so. */
  readonly isQuarantined: boolean;
}
export interface StandingNow extends Standing {
  /** Something of it was to be taken away, and not everybody has acknowledged that. */
  readonly isOwed: boolean;
  /** Activations that were begun, one after another, and of which nobody wrote down how they ended. */
  readonly unfinished: number;
}

export type Step = 'nothing' | 'take-away' | 'settle' | 'activate' | 'quarantine' | 'rest';

/** What is to be done about a plugin without a word of a person. A choice of theirs is only ever carried out, never made. */
export function nextStep(now: StandingNow): Step {
  if (now.state === 'enabled') return now.problem === null ? 'nothing' : 'take-away';
  if (now.isOwed) return 'settle';
  const rest = now.state === restingState(now) ? 'nothing' : 'rest';
  if (now.wanted !== 'enabled' || now.problem !== null || now.isQuarantined) return rest;
  return now.unfinished >= UNFINISHED_MAX ? 'quarantine' : 'activate';
}

/** How a plugin stands that contributes nothing: disabled only where nothing but a person's choice keeps it off. */
export function restingState({ wanted, problem, isQuarantined }: Omit<Standing, 'state'>): 'disabled' | 'unavailable' {
  return wanted === 'enabled' || problem !== null || isQuarantined ? 'unavailable' : 'disabled';
}
