import { digestOf } from '@ambit/capability';
import type { MessageIn } from '@ambit/contracts';

export type Conversation = Pick<MessageIn, 'adapter' | 'endpoint' | 'scene' | 'sceneId' | 'thread' | 'principal'>;

/** The key of a session that is opened without a message; null where nothing but its id shall find it. */
export function placeKey(agentId: string, place: Omit<Conversation, 'scene'>): string | null {
  return place.sceneId === '' && place.thread === undefined ? null : conversationKey(agentId, { ...place, scene: 'private' });
}

/**
 * What finds a message's session: agent, adapter, endpoint, scene and thread. A private scene belongs to one person, so two people who write from
 * the same endpoint never share a tape.
 */
export function conversationKey(agentId: string, { adapter, endpoint, scene, sceneId, thread, principal }: Conversation): string {
  return digestOf([agentId, adapter, endpoint, scene, sceneId, thread ?? null, scene === 'private' ? principal.id : null]);
}
