import type { PermissionOption, PermissionOptionKind, RequestPermissionOutcome } from '@agentclientprotocol/sdk';

export type Answer = 'allowed' | 'denied' | 'cancelled';

/** Once before always: a person decided on one call. */
const WANTED: Readonly<Record<Exclude<Answer, 'cancelled'>, readonly PermissionOptionKind[]>> = {
  allowed: ['allow_once', 'allow_always'],
  denied: ['reject_once', 'reject_always'],
};

/** The option that says what was decided; where the agent offers none that does, the request is cancelled. */
export function outcomeOf(answer: Answer, options: readonly PermissionOption[]): RequestPermissionOutcome {
  if (answer === 'cancelled') return { outcome: 'cancelled' };
  for (const kind of WANTED[answer]) {
    const option = options.find((one) => one.kind === kind);
    if (option !== undefined) return { outcome: 'selected', optionId: option.optionId };
  }
  return { outcome: 'cancelled' };
}
