import type { MirrorRepository, MirroredChange, MirroredSkill } from './mirror.repository.js';

const TOGETHER = { skills: 64, bytes: 8 * 1024 * 1024 } as const;

/** Whether so much was read that it is to be stored before more is. */
export function isMuch(skills: readonly MirroredSkill[]): boolean {
  if (skills.length >= TOGETHER.skills) return true;
  const bytes = skills.reduce((sum, { contents }) => [...contents.values()].reduce((all, one) => all + one.byteLength, sum), 0);
  return bytes >= TOGETHER.bytes;
}

/** What changed in some scopes, stored together. An agent whose part could not be stored is told of, and nobody else's waits for it. */
export class MirrorBatch {
  private changes: MirroredChange[] = [];
  private stored: { readonly agentId: string; readonly done: () => void }[] = [];
  private flushing: Promise<void> = Promise.resolve();
  private readonly lost = new Set<string>();

  constructor(
    private readonly repository: MirrorRepository,
    private readonly failed: (agentIds: readonly string[], error: unknown) => void,
  ) {}

  /** `done` is called once all of the agent's is stored. */
  async add(change: MirroredChange, done?: () => void): Promise<void> {
    this.changes.push(change);
    if (done !== undefined) this.stored.push({ agentId: change.agentId, done });
    const removed = this.changes.reduce((sum, { remove }) => sum + remove.length, 0);
    if (removed >= TOGETHER.skills || isMuch(this.changes.flatMap(({ put }) => put))) await this.flush();
  }

  /** One after another: what comes later of an agent is stored later. */
  async flush(): Promise<void> {
    this.flushing = this.flushing.then(() => this.#flush());
    await this.flushing;
  }

  async #flush(): Promise<void> {
    const [changes, stored] = [this.changes, this.stored];
    this.changes = [];
    this.stored = [];
    try {
      await this.repository.apply(changes);
    } catch (error) {
      const agentIds = [...new Set(changes.map(({ agentId }) => agentId))];
      for (const agentId of agentIds) this.lost.add(agentId);
      this.failed(agentIds, error);
    }
    for (const { agentId, done } of stored) if (!this.lost.has(agentId)) done();
  }
}
