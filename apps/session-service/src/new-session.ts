import { narrowerMode } from '@ambit/capability';
import type { Agent, MessageIn } from '@ambit/contracts';
import { uuidV7 } from './ids.js';
import type { SessionRecord } from './session.repository.js';

export type Opening = Pick<MessageIn, 'principal' | 'adapter' | 'endpoint' | 'sceneId' | 'thread' | 'skills' | 'mode' | 'workspaceId'> & {
  readonly scene?: MessageIn['scene'];
};

/** A session begins with its agent's mode, or a narrower one that was asked for. */
export function newSession(agent: Agent, opening: Opening, now: Date): SessionRecord {
  const { principal, adapter, endpoint, scene, sceneId, thread, skills, mode, workspaceId } = opening;
  return {
    id: uuidV7(now.getTime()),
    projectId: agent.projectId,
    agentId: agent.id,
    kind: 'regular',
    principal,
    skills: skills ?? null,
    mode: mode === undefined ? agent.policy.mode : narrowerMode(mode, agent.policy.mode),
    workspaceId: workspaceId ?? null,
    parentSessionId: null,
    slot: null,
    slotTools: null,
    loadedTools: [],
    adapter,
    endpoint,
    scene: scene ?? 'private',
    sceneId,
    thread: thread ?? null,
    version: 1,
    createdAt: now.toISOString(),
    updatedAt: now.toISOString(),
  };
}

/** As another, with the choices that were made in it and nothing that it was given. */
export function forkOf(agent: Agent, { thread, ...of }: SessionRecord, now: Date): SessionRecord {
  return newSession(agent, { ...of, workspaceId: of.workspaceId ?? undefined, thread: thread ?? undefined }, now);
}

/** A subagent's session: at most the parent's mode and skills, in the parent's place and workspace, for the parent's principal. */
export function childOf(
  agent: Agent,
  { parent, slot, tools }: { readonly parent: SessionRecord; readonly slot: string; readonly tools: readonly string[] | null },
  now: Date,
): SessionRecord {
  return { ...forkOf(agent, parent, now), kind: 'subagent', parentSessionId: parent.id, slot, slotTools: tools };
}
