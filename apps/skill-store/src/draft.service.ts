import { digestOfBytes } from '@ambit/bundle';
import { Fault, fault, skillStore, type FileEntry, type Parsed, type Returns, type SkillDraft } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { SkillBlobs } from './blobs.js';
import { DraftRepository, type Draft } from './draft.repository.js';
import { IntakeService } from './intake.service.js';
import type { Context } from './skill.change.js';
import { SkillRepository, type Version } from './skill.repository.js';
import { SkillService } from './skill.service.js';

const KEPT_MS = 7 * 24 * 60 * 60_000;
const DRAFTS = 16;
const sourceOf = (sessionId: string): string => `draft of session ${sessionId}`;

/** Skills that sessions propose: nobody's, until a person has one of them made an agent's. */
@Injectable()
export class DraftService {
  constructor(
    private readonly drafts: DraftRepository,
    private readonly blobs: SkillBlobs,
    private readonly intake: IntakeService,
    private readonly repository: SkillRepository,
    private readonly skills: SkillService,
  ) {}

  async put({ sessionId, files }: Parsed<typeof skillStore.putDraft>, { startedAt }: Pick<Context, 'startedAt'>): Promise<SkillDraft> {
    const tree: FileEntry[] = [];
    for (const { path, text } of files) {
      const bytes = new TextEncoder().encode(text);
      await this.blobs.add(bytes);
      tree.push({ path, mode: 'file', bytes: bytes.byteLength, digest: digestOfBytes(bytes) });
    }
    const version = await this.intake.fromFiles(tree);
    await this.drafts.removeExpired(startedAt);
    const { name } = version.facts;
    const draft = { sessionId, name, digest: version.digest, expiresAt: new Date(startedAt.getTime() + KEPT_MS) };
    if (!(await this.drafts.put(draft, DRAFTS))) throw fault(skillStore.putDraft, 'DRAFT_LIMIT', { limit: DRAFTS });
    return viewOf(draft, version);
  }

  async list(sessionId: string, now: Date): Promise<{ items: SkillDraft[] }> {
    const items: SkillDraft[] = [];
    for (const draft of await this.drafts.list(sessionId)) {
      const version = draft.expiresAt > now ? await this.repository.version(draft.digest) : undefined;
      if (version !== undefined) items.push(viewOf(draft, version));
    }
    return { items };
  }

  async read({ sessionId, name }: Parsed<typeof skillStore.readDraft>, now: Date) {
    const { draft, version } = await this.found(sessionId, name, now);
    const texts = await Promise.all(
      version.tree.map(async ({ path, digest }) => ({ path, text: (await this.blobs.read(digest))?.toString('utf8') ?? '' })),
    );
    return { ...viewOf(draft, version), texts };
  }

  async discard(sessionId: string, name: string): Promise<{ discarded: boolean }> {
    return { discarded: await this.drafts.remove(sessionId, name) };
  }

  /** What a person agreed to is a digest: a draft that was written anew since is another one. */
  async install(request: Parsed<typeof skillStore.installDraft>, context: Context): Promise<Returns<typeof skillStore.installDraft>> {
    const { sessionId, agentId, projectId, name, digest } = request;
    const { version } = await this.found(sessionId, name, context.startedAt);
    if (version.digest !== digest) throw fault(skillStore.installDraft, 'DRAFT_UNKNOWN');
    const source = sourceOf(sessionId);
    const before = await this.repository.find(agentId, name);
    if (before !== undefined && before.entry.source !== source) throw fault(skillStore.installDraft, 'NAME_TAKEN', { name });
    const put = { agentId, projectId, files: [...version.tree], source, set: null, ifVersion: before?.entry.version ?? 0 };
    const skill = await this.skills.put(put, context).catch((error: unknown) => {
      // Somebody gave the agent another one meanwhile.
      throw error instanceof Fault && error.code === 'VERSION_CONFLICT' ? fault(skillStore.installDraft, 'NAME_TAKEN', { name }) : error;
    });
    await this.drafts.remove(sessionId, name, digest);
    return { agentId, name, digest, version: skill.version };
  }

  private async found(sessionId: string, name: string, now: Date): Promise<{ draft: Draft; version: Version }> {
    const draft = await this.drafts.find(sessionId, name);
    const version = draft === null || draft.expiresAt <= now ? undefined : await this.repository.version(draft.digest);
    if (draft === null || version === undefined) throw fault(skillStore.readDraft, 'DRAFT_UNKNOWN');
    return { draft, version };
  }
}

function viewOf({ name, digest, expiresAt }: Draft, { facts, tree }: Version): SkillDraft {
  return {
    name,
    digest,
    description: facts?.description ?? '',
    files: tree.map(({ path, bytes }) => ({ path, bytes })),
    expiresAt: expiresAt.toISOString(),
  };
}
