import { lstat, mkdir } from 'node:fs/promises';
import { AgentId } from '@ambit/contracts';
import { CONFIG, LOG, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type { SkillStoreConfig } from './config.js';
import { SCOPES } from './domain/skill-folder.js';
import { opened, Refused } from './folder.reader.js';
import { FolderWatch, type Listener } from './folder.watch.js';
import { MirrorBatch } from './mirror.batch.js';
import { MirrorRepository } from './mirror.repository.js';
import { identity, OpenFolder } from './open-folder.js';
import { ScopeMirror, type Look } from './scope.mirror.js';
import { WatchTrust } from './watch.trust.js';

const DEFAULT = 'default';
/** Of the root and the folder of scopes themselves; no agent is called so. */
const ROOT = '*';
/** A storm of changes is one look: it begins so long after the last of them … */
const QUIET_MS = 200;
/** … and no later than so long after the first. */
const LATEST_MS = 1_500;

/** A system that tells of so many at once may have dropped some: Linux keeps 16,384 that were not fetched yet. */
const STORM = 8_000;
/** Looking takes at most a quarter of the time. */
const LEISURE = 3;

/** Agents whose scopes are stored together, and how many of these are looked at at once. */
const TOGETHER = 100;
const AT_ONCE = 4;

interface Folders {
  readonly root: OpenFolder | Refused | undefined;
  readonly scopes: OpenFolder | Refused | undefined;
}

/** Mirrors `SKILLS_ROOT` into the store, one way: the root is the agent `default`'s, `.agent-scopes/<agentId>` that agent's. */
@Injectable()
export class MirrorService implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly changed = new Set<string>();
  /** When the first of them changed; undefined while none has. */
  private firstAt: number | undefined;
  private tells = 0;
  /** What has to be looked at again at the next check. */
  private readonly again = new Set<string>();
  private soon: NodeJS.Timeout | undefined;
  private checks: NodeJS.Timeout | undefined;
  private looking: Promise<void> = Promise.resolve();
  private isWaiting = false;
  private isLooking = false;
  private isClosed = false;
  private identity = '';
  private last = { endedAt: 0, tookMs: 0 };

  constructor(
    @Inject(CONFIG) private readonly config: SkillStoreConfig,
    @Inject(LOG) private readonly log: Logger,
    private readonly watch: FolderWatch,
    private readonly trust: WatchTrust,
    private readonly scopes: ScopeMirror,
    private readonly repository: MirrorRepository,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    const root = this.config.SKILLS_ROOT;
    if (root === undefined) return;
    await mkdir(root, { recursive: true }).catch((error: unknown) => this.log.error({ error, root }, 'the skills folder cannot be made'));
    this.checks = setInterval(() => void this.#check(root), this.config.SKILLS_POLL_MS);
    this.#note(root, ROOT);
  }

  async onApplicationShutdown(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.soon);
    clearInterval(this.checks);
    await this.looking;
    this.watch.close();
  }

  #note(root: string, scope: string): void {
    if (this.isClosed) return;
    this.changed.add(scope);
    const now = performance.now();
    this.firstAt ??= now;
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.#look(root), Math.max(0, Math.min(QUIET_MS, this.firstAt + LATEST_MS - now)));
  }

  /** Whatever the watching missed: another folder in the root's place, what did not settle, and everything from time to time. */
  async #check(root: string): Promise<void> {
    if (this.isWaiting || this.isLooking) return;
    for (const scope of this.again) this.#note(root, scope);
    this.again.clear();
    if ((await identityOf(root)) !== this.identity.split(' ')[0]) this.#note(root, ROOT);
    if (this.trust.isLost()) this.watch.close();
    const every = this.trust.isTold ? this.config.SKILLS_RESCAN_MS : LEISURE * this.last.tookMs;
    if (this.firstAt === undefined && performance.now() - this.last.endedAt >= every) this.#look(root);
  }

  /** One at a time, and at most one that waits: it takes all that changed until it begins. */
  #look(root: string): void {
    if (this.isWaiting) return;
    this.isWaiting = true;
    this.looking = this.looking
      .then(() => {
        this.isWaiting = false;
        this.isLooking = true;
        return this.#mirror(root);
      })
      .catch((error: unknown) => {
        this.again.add(ROOT);
        this.log.error({ error }, 'mirroring the skills folder failed');
      })
      .finally(() => (this.isLooking = false));
  }

  async #mirror(path: string): Promise<void> {
    const startedAt = performance.now();
    const changed = new Set(this.changed);
    this.changed.clear();
    this.firstAt = undefined;
    if (this.tells > STORM) this.again.add(ROOT);
    this.tells = 0;
    const root = await opened(OpenFolder.at(path), path);
    const scopes = root instanceof OpenFolder ? await opened(root.folder(SCOPES), SCOPES) : undefined;
    try {
      if (scopes instanceof Refused) this.log.warn({ reason: scopes.message }, 'no agent has a scope');
      const identity = [root, scopes].map((folder) => (folder instanceof OpenFolder ? folder.identity : '')).join(' ');
      const isOther = identity !== this.identity;
      this.identity = identity;
      const pass = this.watch.begin(ROOT, this.#listener(path));
      if (root instanceof OpenFolder) pass.enter(root, (name) => name === SCOPES);
      if (scopes instanceof OpenFolder) pass.enter(scopes, (name) => AgentId.safeParse(name).success);
      pass.finish(true);
      const isAll = isOther || changed.size === 0 || changed.has(ROOT);
      if (isAll) this.trust.begin();
      const agents = [...(isAll ? await this.#agents(scopes) : changed)];
      for (let from = 0; from < agents.length && !this.isClosed; from += TOGETHER) {
        const moved = await this.#mirrorScopes(path, agents.slice(from, from + TOGETHER), { root, scopes });
        if (changed.size === 0 && !isOther) for (const agentId of moved) this.trust.suspect(agentId);
      }
      if (isAll) this.trust.end();
    } finally {
      if (scopes instanceof OpenFolder) await scopes.close();
      if (root instanceof OpenFolder) await root.close();
      const endedAt = performance.now();
      this.last = { endedAt, tookMs: endedAt - startedAt };
    }
  }

  /** Those that have a scope, and those that had one. */
  async #agents(scopes: OpenFolder | Refused | undefined): Promise<ReadonlySet<string>> {
    const names = scopes instanceof OpenFolder ? (await scopes.items()).map(({ name }) => name) : [];
    const agents = names.filter((name) => name !== DEFAULT && AgentId.safeParse(name).success);
    return new Set([DEFAULT, ...agents, ...(await this.repository.agents())]);
  }

  /** Gives those whose folders were other than before. */
  async #mirrorScopes(path: string, agentIds: readonly string[], folders: Folders): Promise<string[]> {
    const standing = await this.repository.standing(agentIds);
    const batch = new MirrorBatch(this.repository, (lost, error) => {
      for (const agentId of lost) this.again.add(agentId);
      this.log.error({ error, agentIds: lost }, 'mirrored skills could not be stored');
    });
    const moved: string[] = [];
    const next = agentIds.values();
    const work = async (): Promise<void> => {
      for (const agentId of next) {
        if (this.isClosed) return;
        const look = { agentId, batch, standing: standing.filter((entry) => entry.agentId === agentId) };
        if (await this.#mirrorScope(path, look, folders)) moved.push(agentId);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    await batch.flush();
    return moved;
  }

  /** The trouble of one scope is none of the others'. */
  async #mirrorScope(path: string, look: Look, { root, scopes }: Folders): Promise<boolean> {
    const { agentId } = look;
    const pass = this.watch.begin(agentId, this.#listener(path));
    let isWhole = false;
    let scope = root;
    try {
      if (agentId !== DEFAULT) scope = scopes instanceof OpenFolder ? await opened(scopes.folder(agentId), agentId) : undefined;
      const { moved, isUnsettled } = await this.scopes.mirror(look, scope, pass.enter);
      if (isUnsettled) this.again.add(agentId);
      isWhole = true;
      return moved;
    } catch (error) {
      this.again.add(agentId);
      this.log.error({ error, agentId }, 'mirroring the skills of an agent failed');
      return false;
    } finally {
      pass.finish(isWhole);
      if (scope instanceof OpenFolder && scope !== root) await scope.close();
    }
  }

  #listener(path: string): Listener {
    return {
      changed: (scope, name) => {
        this.tells += 1;
        const agentId = scope !== ROOT ? scope : name === SCOPES || name === '' ? ROOT : name;
        this.trust.told(agentId);
        // Nothing there is the default agent's: its root is the root.
        if (scope !== ROOT || agentId !== DEFAULT) this.#note(path, agentId);
      },
      failed: (error) => this.trust.failed(error),
    };
  }
}

async function identityOf(root: string): Promise<string> {
  const info = await lstat(root, { bigint: true }).catch(() => undefined);
  return info?.isDirectory() === true ? identity(info) : '';
}
