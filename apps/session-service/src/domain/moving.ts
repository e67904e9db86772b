import { narrowerMode } from '@ambit/capability';
import type { Agent, PermissionMode, Session } from '@ambit/contracts';

/** The mode after a move: the new agent's, unless the session had asked for less than its old agent gave; then it keeps asking for less. */
export function modeAfterMove(mode: PermissionMode, from: Pick<Agent, 'policy'> | undefined, to: Pick<Agent, 'policy'>): PermissionMode {
  return from !== undefined && mode === from.policy.mode ? to.policy.mode : narrowerMode(mode, to.policy.mode);
}

export type MoveRefusal = 'SESSION_READ_ONLY' | 'TRANSFER_UNSUPPORTED' | 'AGENT_DISABLED' | 'SESSION_BUSY';

/** Why a session may not be given to another agent now; null where it may. */
export function moveRefusal(
  session: Pick<Session, 'kind'>,
  agents: { readonly from: Pick<Agent, 'kind'> | undefined; readonly to: Pick<Agent, 'kind' | 'enabled'> },
  now: { readonly isBusy: boolean; readonly mayCancel: boolean },
): MoveRefusal | null {
  if (session.kind === 'subagent') return 'SESSION_READ_ONLY';
  if (agents.to.kind === 'acp' || agents.from?.kind === 'acp') return 'TRANSFER_UNSUPPORTED';
  if (!agents.to.enabled) return 'AGENT_DISABLED';
  return now.isBusy && !now.mayCancel ? 'SESSION_BUSY' : null;
}
