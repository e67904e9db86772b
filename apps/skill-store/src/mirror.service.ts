import { lstat, mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOfBytes } from '@ambit/bundle';
import { AgentId, Fault, type FileEntry } from '@ambit/contracts';
import { CONFIG, LOG, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { watch, type FSWatcher } from 'chokidar';
import { SkillBlobs } from './blobs.js';
import type { SkillStoreConfig } from './config.js';
import { scanFolder, type FoundSkill } from './folder.reader.js';
import { SkillRepository } from './skill.repository.js';
import { SkillService } from './skill.service.js';

const SCOPES = '.agent-scopes';
/** A storm of changes is one scan. */
const QUIET_MS = 200;
/** Catches what a watcher lost, or a watcher that died. */
const RESCAN_MS = 60_000;

/** Mirrors `SKILLS_ROOT` into the store, one way: the root is the agent `default`'s, `.agent-scopes/<agentId>` that agent's. */
@Injectable()
export class MirrorService implements OnApplicationBootstrap, OnApplicationShutdown {
  private watcher: FSWatcher | undefined;
  private quiet: NodeJS.Timeout | undefined;
  private rescan: NodeJS.Timeout | undefined;
  private scanning: Promise<void> = Promise.resolve();

  constructor(
    @Inject(CONFIG) private readonly config: SkillStoreConfig,
    @Inject(LOG) private readonly log: Logger,
    private readonly blobs: SkillBlobs,
    private readonly repository: SkillRepository,
    private readonly skills: SkillService,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    const root = this.config.SKILLS_ROOT;
    if (root === undefined) return;
    await mkdir(root, { recursive: true });
    this.watcher = watch(root, {
      followSymlinks: false,
      ignoreInitial: true,
      ignored: (path) => /(^|\/)\.(?!agent-scopes(\/|$))[^/]*$/.test(path.slice(root.length)),
    });
    this.watcher.on('all', () => this.soon(root));
    this.watcher.on('error', (error) => this.log.warn({ error }, 'the skills folder can not be watched; it is read once a minute'));
    this.rescan = setInterval(() => this.soon(root), RESCAN_MS);
    this.soon(root);
  }

  async onApplicationShutdown(): Promise<void> {
    clearTimeout(this.quiet);
    clearInterval(this.rescan);
    await this.watcher?.close();
    await this.scanning;
  }

  private soon(root: string): void {
    clearTimeout(this.quiet);
    this.quiet = setTimeout(() => {
      this.scanning = this.scanning
        .then(() => this.mirror(root))
        .catch((error: unknown) => this.log.error({ error }, 'mirroring the skills folder failed'));
    }, QUIET_MS);
  }

  private async mirror(root: string): Promise<void> {
    await this.mirrorScope('default', root);
    const scopes = join(root, SCOPES);
    const info = await lstat(scopes).catch(() => undefined);
    if (info === undefined || !info.isDirectory()) return;
    for (const agentId of (await readdir(scopes)).sort()) {
      if (AgentId.safeParse(agentId).success) await this.mirrorScope(agentId, join(scopes, agentId));
    }
  }

  private async mirrorScope(agentId: string, root: string): Promise<void> {
    const { skills, refused } = await scanFolder(root);
    for (const [folder, reason] of refused) this.log.warn({ agentId, folder, reason }, 'a skill folder was not taken');
    const present = new Set([...refused.keys()]);
    const names = new Set<string>();
    for (const skill of skills) {
      present.add(skill.folder);
      const name = await this.put(agentId, skill, names);
      if (name !== undefined) names.add(name);
    }
    for (const { entry } of await this.repository.list({ agentId }, { limit: 1_000 })) {
      if (entry.folder === null || present.has(entry.folder)) continue; // an upload, or still there
      await this.skills.remove(agentId, entry.name, MIRROR());
    }
  }

  /** The first path of a name wins, as the scan's order is that of the paths. */
  private async put(agentId: string, { folder, files }: FoundSkill, taken: ReadonlySet<string>): Promise<string | undefined> {
    const entries: FileEntry[] = [];
    for (const { path, executable, bytes } of files) {
      await this.blobs.add(bytes);
      entries.push({ path, mode: executable ? 'executable' : 'file', bytes: bytes.byteLength, digest: digestOfBytes(bytes) });
    }
    try {
      const { name } = await this.skills.put(
        {
          agentId,
          projectId: 'default',
          files: entries,
          source: `folder:${folder}`.slice(0, 500),
          set: null,
          folder,
          onlyName: (found) => !taken.has(found),
        },
        MIRROR(),
      );
      return name;
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      this.log.warn({ agentId, folder, code: error.code, reason: error.data }, 'a skill folder was not taken');
      return undefined;
    }
  }
}

const MIRROR = () => ({
  principal: undefined,
  actor: { id: 'system:skills-root', kind: 'system' as const, issuer: 'local', display: 'skills folder' },
  via: { kind: 'system' as const, id: 'skills-root' },
  startedAt: new Date(),
  traceId: null,
});
