import { Bus } from '@ambit/bus';
import { allows, readSnapshot, type SnapshotRecord } from '@ambit/capability';
import { fault, mcpBroker, sessionService, type Authority, type Output } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';

const SNAPSHOTS = 64;
/** Larger than any record that composition makes. */
const SNAPSHOT_CHARACTERS = 64 * 1024 * 1024;
const ENDED: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled', 'parked']);

export type SnapshotServer = SnapshotRecord['servers'][number];
type Kept = Pick<SnapshotRecord, 'servers' | 'skills'>;

/** What a run may ask servers for now. */
export interface RunScope {
  readonly authority: Authority;
  /** The servers of its snapshot that are still there for it. */
  readonly servers: readonly SnapshotServer[];
  /** Those that its snapshot has and its policy, or a revocation, has taken away since, with why. */
  readonly refused: ReadonlyMap<string, 'SERVER_NOT_ALLOWED' | 'TOOL_GONE'>;
  readonly skills: SnapshotRecord['skills'];
}

/** Checks who asks: the run must be going, and what it asks for in its own snapshot, as for tool calls. */
@Injectable()
export class RunScopes {
  /** By fingerprint, so an entry is never wrong; the least recently used goes first. */
  private readonly snapshots = new Map<string, Promise<Kept>>();

  constructor(@Inject(Bus) private readonly bus: Bus) {}

  async of({ runId, sessionId }: { readonly runId: string; readonly sessionId: string }): Promise<RunScope> {
    const authority = await this.bus.call(sessionService.getAuthority, { runId });
    // Another session's run is answered as one that does not exist.
    if (authority.sessionId !== sessionId) throw fault(mcpBroker.readResource, 'TOOL_NOT_IN_SNAPSHOT');
    if (ENDED.has(authority.status)) throw fault(mcpBroker.readResource, 'TURN_ENDED');
    const { policy, ancestors } = authority;
    const chain = [policy, ...ancestors.map((ancestor) => ancestor.policy)];
    if (!authority.enabled || ancestors.some(({ enabled }) => !enabled) || chain.includes(null))
      throw fault(mcpBroker.readResource, 'AGENT_DISABLED');
    const snapshot = await this.snapshot(authority.fingerprint);
    const refused = new Map<string, 'SERVER_NOT_ALLOWED' | 'TOOL_GONE'>();
    for (const { serverId, slug, owner } of snapshot.servers) {
      if (authority.revokedOwners.includes(owner)) refused.set(serverId, 'TOOL_GONE');
      else if (chain.some((one) => one === null || !allows(one.servers, serverId, slug))) refused.set(serverId, 'SERVER_NOT_ALLOWED');
    }
    return { authority, servers: snapshot.servers.filter(({ serverId }) => !refused.has(serverId)), refused, skills: snapshot.skills };
  }

  private snapshot(fingerprint: string): Promise<Kept> {
    const known = this.snapshots.get(fingerprint);
    const reading = known ?? this.read(fingerprint);
    this.snapshots.delete(fingerprint);
    this.snapshots.set(fingerprint, reading);
    if (known === undefined) reading.catch(() => this.snapshots.delete(fingerprint));
    const [oldest] = this.snapshots.keys();
    if (this.snapshots.size > SNAPSHOTS && oldest !== undefined) this.snapshots.delete(oldest);
    return reading;
  }

  private async read(fingerprint: string): Promise<Kept> {
    let text = '';
    for (let offset: number | null = 0; offset !== null;) {
      const page: Output<typeof sessionService.readSnapshot> = await this.bus.call(sessionService.readSnapshot, { fingerprint, offset });
      text += page.text;
      if (text.length > SNAPSHOT_CHARACTERS)
        throw new Error(`the snapshot ${fingerprint} is larger than ${SNAPSHOT_CHARACTERS} characters`);
      offset = page.next;
    }
    const { servers, skills } = readSnapshot(text, fingerprint);
    return { servers, skills };
  }
}
