import { fault, mcpBroker, platformFault, type Fault } from '@ambit/contracts';
import type { CallOutcome } from './outcome.js';

/** Why a call may not leave any more: its owner may be another one by now. */
export const STALE = 'The lease of this instance is not certainly held any more';
/** Why a call may not leave: its tool is not what the snapshot pinned. */
export const DRIFT = 'The server offers another definition of this tool than the one that was pinned';

/** The fault of a call of which nothing was sent. */
export function notDispatched(
  { cause, message }: CallOutcome & { readonly status: 'not_dispatched' },
  of: { readonly tool: string; readonly serverId: string; readonly credentials: 'shared' | 'agent' | 'user' | undefined },
): Fault {
  const { tool, serverId, credentials } = of;
  if (message === STALE) return fault(mcpBroker.executeCall, 'STALE_LEASE');
  if (message === DRIFT) return fault(mcpBroker.executeCall, 'CATALOG_DRIFT', { tool });
  if (cause === 'cancelled') return platformFault('CANCELLED', undefined, 'The call was cancelled before it was sent');
  if (cause === 'unauthorized' && credentials !== undefined)
    return fault(mcpBroker.executeCall, 'AUTHORIZATION_REQUIRED', { serverId, credentials, reason: 'The server asks for a sign-in' });
  return fault(mcpBroker.executeCall, 'SERVER_UNAVAILABLE', { reason: message });
}

/** The fault of a call that was sent and has no certain end. `isCancelled`: somebody asked for exactly that. */
export function uncertain(outcome: CallOutcome & { readonly status: 'uncertain' }, isCancelled: boolean): Fault {
  switch (outcome.cause) {
    case 'timeout':
      return fault(mcpBroker.executeCall, 'CALL_TIMEOUT');
    case 'cancelled':
      // Only whoever asked for the cancel is told that it was one: a call that an instance's end cut short has an unknown end.
      return isCancelled
        ? platformFault('CANCELLED', undefined, 'The call was cancelled after it was sent; what it did until then stands')
        : fault(mcpBroker.executeCall, 'INDETERMINATE', undefined, 'The instance was stopped during the call');
    case 'too_large':
      return fault(mcpBroker.executeCall, 'RESULT_TOO_LARGE', { limitBytes: outcome.limitBytes ?? 0 });
    case 'invalid_result':
      return fault(mcpBroker.executeCall, 'TOOL_FAILED', { reason: outcome.message });
    case 'connection_lost':
      return fault(
        mcpBroker.executeCall,
        'INDETERMINATE',
        undefined,
        `The connection to the server ended during the call; ${outcome.message}`,
      );
  }
}
