import { Bus } from '@ambit/bus';
import { BoundedMap, sha256Hex, type SnapshotRecord } from '@ambit/capability';
import { sessionService, type Output } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { shownTools, type Naming, type ShownTool } from './domain/shown-tools.js';
import type { Caller } from './edge-tokens.service.js';
import { SnapshotReader } from './snapshot.reader.js';

const KEPT = 2_000;
/** Events are hints: what was opened is asked for again after this, whatever was heard. */
const GOOD_MS = 5_000;
/** So long what is there is used while it is asked for again. */
const USED_MS = 30_000;

type Run = Output<typeof sessionService.openEdge>;

/** What a caller sees now: its run, and its tools under the names that it is shown. */
export interface World {
  readonly run: Run;
  readonly record: SnapshotRecord;
  readonly tools: readonly ShownTool[];
  readonly byName: ReadonlyMap<string, ShownTool>;
  /** Moves when the list that the caller is shown does. */
  readonly toolsHash: string;
}

interface Held {
  readonly at: number;
  readonly world: Promise<World>;
  isStale: boolean;
  isRenewed: boolean;
}

/** What changed, as an event tells it; nothing named: everything. */
export interface Change {
  readonly projectId?: string;
  readonly agentId?: string;
}

/** What each token opens, for a few seconds at a time. Nothing of a client is kept. */
@Injectable()
export class Worlds {
  readonly #held = new BoundedMap<string, Held & { readonly caller: Caller }>(KEPT);
  readonly #listeners = new Set<(change: Change) => void>();

  constructor(
    private readonly bus: Bus,
    private readonly reader: SnapshotReader,
  ) {}

  /** What the caller sees. Rejects with the fault of whoever refuses it: the agent is switched off, the session or run is gone. */
  of(caller: Caller, naming: Naming): Promise<World> {
    const key = `${caller.token.id} ${naming.names} ${naming.first ?? ''}`;
    const known = this.#held.get(key);
    const age = known === undefined ? Infinity : performance.now() - known.at;
    if (known === undefined || known.isStale || age > USED_MS) return this.#open(key, caller, naming).world;
    if (age > GOOD_MS && !known.isRenewed) {
      known.isRenewed = true;
      const renewed = this.#make(caller, naming);
      renewed.world.then(
        () => this.#held.set(key, renewed),
        () => (known.isStale = true),
      );
    }
    return known.world;
  }

  /** Has everything that a change may touch asked for anew, and tells whoever watches. */
  changed(change: Change): void {
    for (const [, held] of this.#held.entries()) {
      const { projectId, agentId } = held.caller.token;
      if ((change.projectId ?? projectId) === projectId && (change.agentId ?? agentId) === agentId) held.isStale = true;
    }
    for (const listener of this.#listeners) listener(change);
  }

  /** Asks for a caller's world anew: its run has another snapshot by now, or has ended. */
  forget(caller: Caller): void {
    for (const [, held] of this.#held.entries()) if (held.caller.token.id === caller.token.id) held.isStale = true;
  }

  /** Tells of changes until the function that it gives is called. */
  watch(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #open(key: string, caller: Caller, naming: Naming): Held {
    const held = this.#make(caller, naming);
    this.#held.set(key, held);
    held.world.catch(() => (held.isStale = true));
    return held;
  }

  #make(caller: Caller, naming: Naming): Held & { readonly caller: Caller } {
    return { at: performance.now(), world: this.#read(caller, naming), isStale: false, isRenewed: false, caller };
  }

  async #read({ token, identity }: Caller, naming: Naming): Promise<World> {
    const { id: tokenId, agentId, sessionId, runId } = token;
    const run = await this.bus.call(
      sessionService.openEdge,
      { tokenId, agentId, sessionId, runId, principal: identity.principal },
      identity,
    );
    const record = await this.reader.snapshot(run.fingerprint);
    const tools = shownTools(record, await this.reader.definitions(record), naming);
    const toolsHash = sha256Hex(JSON.stringify(tools.map(({ definition }) => definition)));
    return { run, record, tools, byName: new Map(tools.map((tool) => [tool.name, tool])), toolsHash };
  }
}
