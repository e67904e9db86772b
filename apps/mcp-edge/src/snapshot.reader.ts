import { Bus } from '@ambit/bus';
import { BoundedMap, readSnapshot, type SnapshotRecord } from '@ambit/capability';
import { Fault, mcpBroker, sessionService, type ToolDefinition } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import type { Definitions } from './domain/shown-tools.js';

const SNAPSHOTS = 256;
const CATALOGUES = 1_000;
/** Larger than any record that composition makes. */
const MAX_CHARACTERS = 64 * 1024 * 1024;

type Catalogue = ReadonlyMap<string, ToolDefinition>;

/** Reads what never changes: snapshots by their fingerprint, and catalogues of servers by their hash. */
@Injectable()
export class SnapshotReader {
  readonly #snapshots = new BoundedMap<string, Promise<SnapshotRecord>>(SNAPSHOTS);
  readonly #catalogues = new BoundedMap<string, Promise<Catalogue | undefined>>(CATALOGUES);

  constructor(
    private readonly bus: Bus,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  /** The record, whose text hashes to its fingerprint. */
  snapshot(fingerprint: string): Promise<SnapshotRecord> {
    const known = this.#snapshots.get(fingerprint);
    if (known !== undefined) return known;
    const reading = this.#read(fingerprint);
    this.#snapshots.set(fingerprint, reading);
    reading.catch(() => this.#snapshots.delete(fingerprint));
    return reading;
  }

  /** The definitions of a snapshot's servers as they gave them. A list that moved since is left out: the next snapshot has it. */
  async definitions({ servers }: SnapshotRecord): Promise<Definitions> {
    const read = await Promise.all(
      servers.map(async ({ serverId, catalogHash }) => [serverId, await this.#catalogue(serverId, catalogHash)] as const),
    );
    return new Map(read.flatMap(([serverId, catalogue]) => (catalogue === undefined ? [] : [[serverId, catalogue] as const])));
  }

  async #read(fingerprint: string): Promise<SnapshotRecord> {
    let text = '';
    for (let offset: number | null = 0; offset !== null;) {
      const page: { text: string; next: number | null } = await this.bus.call(sessionService.readSnapshot, { fingerprint, offset });
      text += page.text;
      if (text.length > MAX_CHARACTERS) throw new Error(`the snapshot ${fingerprint} is larger than ${MAX_CHARACTERS} characters`);
      offset = page.next;
    }
    return readSnapshot(text, fingerprint);
  }

  #catalogue(serverId: string, catalogHash: string): Promise<Catalogue | undefined> {
    const key = `${serverId} ${catalogHash}`;
    const known = this.#catalogues.get(key);
    if (known !== undefined) return known;
    const reading = this.#pages(serverId, catalogHash).catch((error: unknown) => {
      this.#catalogues.delete(key);
      // The owner is away, or has another list by now.
      if (!(error instanceof Fault)) throw error;
      this.log.info({ serverId, code: error.code }, 'a server’s list cannot be read as it was written; the snapshot’s own words are shown');
      return undefined;
    });
    this.#catalogues.set(key, reading);
    return reading;
  }

  async #pages(serverId: string, catalogHash: string): Promise<Catalogue> {
    const tools = new Map<string, ToolDefinition>();
    for (let offset: number | null = 0; offset !== null;) {
      const page: { tools: ToolDefinition[]; next: number | null } = await this.bus.call(mcpBroker.cataloguePage, {
        serverId,
        catalogHash,
        offset,
      });
      for (const tool of page.tools) tools.set(tool.name, tool);
      offset = page.next;
    }
    return tools;
  }
}
