import { countServed, record, servedCount, watchWire } from '@ambit/testing';
import { it } from '@jest/globals';
import type { ClauseId } from './requirements.js';

watchWire();

/** What a citing test can ask about itself. */
export interface Verification {
  /** Requests of this test that a service has answered so far. */
  readonly served: () => number;
}

/**
 * A test that shows clauses of requirements. It counts for them only when it passes and a service answered a request of its
 * own; `npm run requirements` says which clauses are shown. `timeoutMs` as for Jest's `it`.
 */
export function verifies(
  clauses: ClauseId | readonly ClauseId[],
  behavior: string,
  options: (verification: Verification) => Promise<void>,
): void;
export function verifies(
  clauses: ClauseId | readonly ClauseId[],
  behavior: string,
  options: { readonly timeoutMs: number; readonly shows: (verification: Verification) => Promise<void> },
): void;
export function verifies(
  clauses: ClauseId | readonly ClauseId[],
  behavior: string,
  options:
    | ((verification: Verification) => Promise<void>)
    | { readonly timeoutMs: number; readonly shows: (verification: Verification) => Promise<void> },
): void {
  const cited = typeof clauses === 'string' ? [clauses] : clauses;
  const { shows, timeoutMs } = typeof options === 'function' ? { shows: options, timeoutMs: undefined } : options;
  const test = `${cited.join(' ')} ${behavior}`;
  const body = (): Promise<void> =>
    countServed(async () => {
      let passed = false;
      try {
        await shows({ served: servedCount });
        passed = true;
      } finally {
        record({ kind: 'test', clauses: cited, test, passed, served: servedCount() });
      }
    });
  it(test, body, timeoutMs);
}
