import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { skillStore, type Skill } from '@ambit/contracts';
import { openDatabase } from '@ambit/db';
import { collect, startNats, startPostgres, startService, until, type TestNats, type TestPostgres } from '@ambit/testing';
import { Module } from '@nestjs/common';
import { SkillStoreConfig } from '../src/config.js';
import { WATCH, type Watch } from '../src/folder.watch.js';
import { SkillStoreModule } from '../src/skill-store.module.js';
import { skillText } from './upload.js';

export type Files = Readonly<Record<string, string>>;
export const SCOPES = '.agent-scopes';

/** A started store that mirrors a folder of this machine. */
export class SkillsRoot {
  private service: Awaited<ReturnType<typeof startService>> | undefined;
  private constructor(
    readonly nats: TestNats,
    private readonly postgres: TestPostgres,
    /** A folder of its own; the mirrored one lies in it. */
    readonly outside: string,
  ) {}

  static async start(
    options: { readonly environment?: Readonly<Record<string, string>>; readonly watch?: Watch } = {},
  ): Promise<SkillsRoot> {
    const [nats, postgres, outside] = await Promise.all([startNats(), startPostgres(), mkdtemp(join(tmpdir(), 'ambit-skills-'))]);
    const started = new SkillsRoot(nats, postgres, outside);
    started.service = await startService('skill-store', options.watch === undefined ? SkillStoreModule : watching(options.watch), {
      nats,
      postgres,
      config: SkillStoreConfig,
      database: openDatabase,
      environment: { SKILLS_ROOT: started.root, ...options.environment },
    });
    return started;
  }

  async stop(): Promise<void> {
    await this.service?.close();
    await this.postgres.stop();
    await this.nats.stop();
    await rm(this.outside, { recursive: true, force: true });
  }

  get root(): string {
    return join(this.outside, 'root');
  }

  scope(agentId: string): string {
    return join(this.root, SCOPES, agentId);
  }

  /** Makes a folder aside and moves it in whole. */
  async drop(folder: string, files: Files): Promise<void> {
    const aside = await mkdtemp(join(this.outside, 'aside-'));
    await writeAll(aside, files);
    await mkdir(dirname(folder), { recursive: true });
    await rename(aside, folder);
  }

  /** What a run of the agent would be offered, without the platform's own. */
  async effective(agentId: string): Promise<string[]> {
    const { skills } = await this.nats.bus.call(skillStore.effectiveSkills, { agentId, plugins: [] });
    return skills.filter(({ owner }) => owner !== 'builtin').map(({ name }) => name);
  }

  async list(agentId: string): Promise<Skill[]> {
    return (await this.nats.bus.call(skillStore.listSkills, { agentId, limit: 100 })).items;
  }

  /** Name → why it cannot be used. */
  async refused(agentId: string): Promise<Readonly<Record<string, string>>> {
    const invalid = (await this.list(agentId)).filter(({ valid }) => !valid);
    return Object.fromEntries(invalid.map(({ name, warnings }) => [name, warnings.join()]));
  }

  async read(agentId: string, name: string, path = 'SKILL.md'): Promise<string | undefined> {
    return (await this.nats.bus.call(skillStore.readSkill, { agentId, name, path })).text;
  }

  events() {
    return collect(this.nats.connection, skillStore.skillChanged);
  }

  /** Waits until a skill that is put into the agent's scope now is there: what was done before has been looked at by then. */
  async settle(agentId: string, name: string): Promise<void> {
    await this.drop(join(agentId === 'default' ? this.root : this.scope(agentId), name), { 'SKILL.md': skillText(name) });
    await until(async () => (await this.effective(agentId)).includes(name));
  }
}

export async function writeAll(folder: string, files: Files): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
}

/** The store as it is, but for who watches its folders. */
function watching(watcher: Watch) {
  @Module({
    controllers: Reflect.getMetadata('controllers', SkillStoreModule),
    providers: [...Reflect.getMetadata('providers', SkillStoreModule), { provide: WATCH, useValue: watcher }],
  })
  class Watching {}
  return Watching;
}
