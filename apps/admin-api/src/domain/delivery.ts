const FIRST_MS = 5_000;
const LONGEST_MS = 3_600_000;
/** How much of a delay is left to chance, so that what failed together does not come together again. */
const CHANCE = 0.25;
const GIVE_UP_MS = 24 * 3_600_000;
const ERROR_CHARACTERS = 500;

/** How an attempt to deliver ended. */
export type Attempt =
  | { readonly kind: 'taken' }
  /** Nobody waits for it any more. */
  | { readonly kind: 'obsolete'; readonly reason: string }
  | { readonly kind: 'refused'; readonly error: string };

export type DeliveryVerdict =
  | { readonly status: 'delivered'; readonly error: null }
  | { readonly status: 'obsolete' | 'failed'; readonly error: string }
  | { readonly status: 'pending'; readonly error: string; readonly delayMs: number };

/** Milliseconds until the next attempt after so many, at least one: 5 s, doubled each time, an hour at most. `chance` is from 0 to 1. */
export function delayAfter(attempts: number, chance: number): number {
  const grown = Math.min(LONGEST_MS / (1 + CHANCE), FIRST_MS * 2 ** (attempts - 1));
  return Math.round(grown * (1 + CHANCE * chance));
}

/** What an attempt leads to. What was not taken is tried again, and given up once the next attempt would be a day after the event was stored. */
export function verdictOf(
  attempt: Attempt,
  about: { readonly attempts: number; readonly ageMs: number; readonly chance: number },
): DeliveryVerdict {
  switch (attempt.kind) {
    case 'taken':
      return { status: 'delivered', error: null };
    case 'obsolete':
      return { status: 'obsolete', error: attempt.reason };
    case 'refused': {
      const error = attempt.error.slice(0, ERROR_CHARACTERS);
      const delayMs = delayAfter(about.attempts, about.chance);
      return about.ageMs + delayMs > GIVE_UP_MS ? { status: 'failed', error } : { status: 'pending', error, delayMs };
    }
  }
}
