import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { Responder, silentLog, type Bus } from '@ambit/bus';
import {
  fault,
  Policy,
  sessionService,
  skillStore,
  type FileEntry,
  type ImportChoice,
  type ImportFormat,
  type ImportSource,
  type Skill,
} from '@ambit/contracts';
import { openDatabase } from '@ambit/db';
import { startNats, startPostgres, startService, type TestNats, type TestPostgres } from '@ambit/testing';
import type { NatsConnection } from '@nats-io/nats-core';
import { SkillStoreConfig } from '../src/config.js';
import { SkillStoreModule } from '../src/skill-store.module.js';
import { skillText, upload } from './upload.js';

export interface BroughtFile {
  readonly path: string;
  readonly bytes: Buffer;
  readonly executable: boolean;
}
const CORPUS = fileURLToPath(new URL('./corpus', import.meta.url));

/** What somebody has of one tool, by path below their home or project. */
export async function corpus(format: string): Promise<BroughtFile[]> {
  const root = join(CORPUS, format);
  const found = await readdir(root, { recursive: true, withFileTypes: true });
  const files = found.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return Promise.all(
    files.sort().map(async (file) => ({
      path: file.slice(root.length + 1),
      bytes: await readFile(file),
      executable: ((await stat(file)).mode & 0o100) !== 0,
    })),
  );
}

export function files(texts: Readonly<Record<string, string>>): BroughtFile[] {
  return Object.entries(texts).map(([path, text]) => ({ path, bytes: Buffer.from(text), executable: false }));
}

export async function putBytes(bus: Bus, bytes: Uint8Array): Promise<string> {
  const digest = createHash('sha256').update(bytes).digest('hex');
  for (let offset = 0; ;) {
    const data = Buffer.from(bytes.subarray(offset, offset + 256 * 1024)).toString('base64');
    const { have, complete } = await bus.call(skillStore.putBlob, { digest, bytes: bytes.byteLength, offset, data });
    if (complete) return digest;
    offset = have;
  }
}

/** Uploads files; gives the entries that an import takes. */
async function brought(bus: Bus, all: readonly BroughtFile[]): Promise<FileEntry[]> {
  const entries: FileEntry[] = [];
  for (const { path, bytes, executable } of all)
    entries.push({ path, mode: executable ? 'executable' : 'file', bytes: bytes.byteLength, digest: await putBytes(bus, bytes) });
  return entries;
}

interface TarEntry {
  readonly path: string;
  readonly bytes?: Buffer;
  readonly executable?: boolean;
  /** @default '0', a file */
  readonly type?: string;
  readonly linkTo?: string;
}

/** A tar.gz in the POSIX format, of whatever entries a hostile hand could write. */
export function tarGz(entries: readonly TarEntry[]): Buffer {
  const blocks = entries.flatMap(({ path, bytes = Buffer.alloc(0), executable, type = '0', linkTo = '' }) => {
    const header = Buffer.alloc(512);
    header.write(path, 0, 100);
    header.write(executable === true ? '0000755' : '0000644', 100);
    header.write(bytes.byteLength.toString(8).padStart(11, '0'), 124);
    header.write(' '.repeat(8), 148);
    header.write(type, 156);
    header.write(linkTo, 157, 100);
    header.write('ustar\u000000', 257);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\u0000 `, 148);
    return [header, bytes, Buffer.alloc((512 - (bytes.byteLength % 512)) % 512)];
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(1_024)]));
}

/** Choices that take what a preview shows, all with one strategy. */
export function choose(
  skills: readonly { readonly name: string | null; readonly digest: string | null; readonly replaces: string | null }[],
  onConflict: ImportChoice['onConflict'] = 'skip',
): ImportChoice[] {
  return skills.flatMap(({ name, digest, replaces }) => (name === null || digest === null ? [] : [{ name, digest, replaces, onConflict }]));
}

export const from = (agentId: string): ImportSource => ({ kind: 'agent', agentId });

/** The owner of agents as a peer on the bus: those named `program…` run a program of their own, those named `no-…` are not there. */
export function startAgents(connection: NatsConnection): Responder {
  const responder = new Responder({ connection, log: silentLog });
  responder.answer(sessionService.getAgent, ({ id }) => {
    if (id.startsWith('no-')) throw fault(sessionService.getAgent, 'AGENT_UNKNOWN');
    const at = new Date(0).toISOString();
    return {
      id,
      kind: id.startsWith('program') ? ('acp' as const) : ('sdk' as const),
      policy: Policy.parse({}),
      version: 1,
      policyVersion: 1,
      createdAt: at,
      updatedAt: at,
    };
  });
  return responder;
}

type OnConflict = ImportChoice['onConflict'];

/** A skill store on servers of its own, and what people do with it by hand. */
export class ImportWorld {
  private constructor(
    readonly nats: TestNats,
    readonly postgres: TestPostgres,
    private readonly others: readonly { close(): Promise<void> }[],
  ) {}

  static async start(environment: Readonly<Record<string, string>> = {}): Promise<ImportWorld> {
    const [nats, postgres] = await Promise.all([startNats(), startPostgres()]);
    const agents = startAgents(nats.connection);
    const about = { config: SkillStoreConfig, database: openDatabase, environment };
    return new ImportWorld(nats, postgres, [await startService('skill-store', SkillStoreModule, { nats, postgres, ...about }), agents]);
  }

  async stop(): Promise<void> {
    for (const other of this.others) await other.close();
    await this.postgres.stop();
    await this.nats.stop();
  }

  get bus(): Bus {
    return this.nats.bus;
  }
  get connection(): NatsConnection {
    return this.nats.connection;
  }

  async putFiles(agentId: string, texts: Readonly<Record<string, string>>): Promise<Skill> {
    return this.bus.call(skillStore.putSkill, { agentId, files: await upload(this.bus, texts) });
  }
  put(agentId: string, name: string, body = 'Do it.'): Promise<Skill> {
    return this.putFiles(agentId, { 'SKILL.md': skillText(name, body) });
  }
  get(agentId: string, name: string) {
    return this.bus.call(skillStore.getSkill, { agentId, name });
  }
  async list(agentId: string): Promise<Skill[]> {
    return (await this.bus.call(skillStore.listSkills, { agentId })).items;
  }
  async names(agentId: string): Promise<string[]> {
    return (await this.list(agentId)).map(({ name }) => name);
  }
  async text(agentId: string, name: string, path = 'SKILL.md'): Promise<string | undefined> {
    return (await this.bus.call(skillStore.readSkill, { agentId, name, path })).text;
  }

  preview(agentId: string, source: ImportSource) {
    return this.bus.call(skillStore.previewImport, { agentId, source });
  }
  execute(agentId: string, source: ImportSource, skills: ImportChoice[]) {
    return this.bus.call(skillStore.executeImport, { agentId, source, skills });
  }
  /** All that a preview shows, imported in one way. */
  async bring(agentId: string, source: ImportSource, onConflict?: OnConflict) {
    return this.execute(agentId, source, choose((await this.preview(agentId, source)).skills, onConflict));
  }
  async sent(all: readonly BroughtFile[], format: ImportFormat = 'agents'): Promise<ImportSource> {
    return { kind: 'files', format, files: await brought(this.bus, all) };
  }
  async packed(archive: Uint8Array, format: ImportFormat = 'agents'): Promise<ImportSource> {
    return { kind: 'archive', format, archive: await putBytes(this.bus, archive) };
  }
}
