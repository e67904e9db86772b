import type { Call } from '@ambit/bus';
import { digestOf, isObject, sha256Hex, splitFrontmatter, type SnapshotSkill, utf8Text } from '@ambit/capability';
import { Fault, fault, mcpBroker, ServerSkill, type JsonObject, type Parsed, type Returns } from '@ambit/contracts';
import { pageOf } from '@ambit/mcp';
import { Inject, Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { ContentService } from './content.service.js';
import { fileUriOf, SKILL_FILE_BYTES } from './domain/server-skill.js';
import { InstanceService } from './instance.service.js';
import { OfferRepository } from './offer.repository.js';
import { RunScopes, type RunScope } from './run-scope.service.js';
import { ServerRepository } from './server.repository.js';
import { offersOf } from './server.view.js';
import { SkillDiscovery } from './skill-discovery.service.js';
import { SkillSwitch } from './skill-switch.service.js';
import type { SkillModule } from './skills/entry.js';

type Read = typeof mcpBroker.readServerSkill;
type McpSkill = SnapshotSkill & { readonly mcp: NonNullable<SnapshotSkill['mcp']> };

const PAGE_BYTES = 256 * 1024;
const FILE_BYTES = 1024 * 1024;
const Skills = z.array(ServerSkill);

/** Skills of servers for ingress, and their files for runs that have them. Every byte that leaves here was checked against what is known of it. */
@Injectable()
export class ServerSkillService {
  constructor(
    @Inject(RunScopes) private readonly scopes: RunScopes,
    @Inject(ContentService) private readonly content: ContentService,
    @Inject(ServerRepository) private readonly servers: ServerRepository,
    @Inject(OfferRepository) private readonly offers: OfferRepository,
    @Inject(InstanceService) private readonly instances: InstanceService,
    @Inject(SkillDiscovery) private readonly discovery: SkillDiscovery,
    @Inject(SkillSwitch) private readonly switches: SkillSwitch,
  ) {}

  async page({ serverId, hash, offset }: Parsed<typeof mcpBroker.skillPage>): Promise<Returns<typeof mcpBroker.skillPage>> {
    const text = await this.offers.read(serverId, 'skills', hash);
    if (text === null) throw fault(mcpBroker.skillPage, 'OFFERS_MOVED');
    const { items, next } = pageOf(Skills.parse(JSON.parse(text)), offset, PAGE_BYTES);
    return { skills: items, next };
  }

  async read(input: Parsed<Read>, call: Call<Read>): Promise<Returns<Read>> {
    const module = await this.switches.module();
    const scope = await this.scopes.of(input);
    const pinned =
      module === undefined
        ? undefined
        : scope.skills.find((skill): skill is McpSkill => skill.name === input.name && skill.mcp !== undefined);
    if (module === undefined || pinned === undefined) throw fault(mcpBroker.readServerSkill, 'TOOL_NOT_IN_SNAPSHOT');
    const skill = await this.standing(pinned);
    const isMain = input.path === 'SKILL.md';
    if (!isMain && !scope.authority.openedSkills.includes(input.name.slice(0, 64)))
      throw fault(mcpBroker.readServerSkill, 'SKILL_NOT_ACTIVE');
    const uri = isMain ? skill.uri : fileUriOf(skill.uri, input.path);
    const listed = uri === undefined ? undefined : skill.files?.find((file) => file.uri === uri);
    // What a server lists of a skill is all that there is of it.
    if (uri === undefined || (skill.files !== null && listed === undefined)) throw fault(mcpBroker.readServerSkill, 'FILE_NOT_FOUND');
    const limitBytes = isMain ? SKILL_FILE_BYTES : FILE_BYTES;
    if ((listed?.bytes ?? 0) > limitBytes) throw fault(mcpBroker.readServerSkill, 'FILE_TOO_LARGE', { limitBytes });
    const bytes = await this.bytesOf(scope, { serverId: pinned.mcp.serverId, uri, limitBytes }, call);
    await this.check(bytes, { skill, isMain, module, listed, pinned });
    const text = utf8Text(bytes);
    if (text === undefined) throw fault(mcpBroker.readServerSkill, 'NOT_TEXT');
    const base = skill.uri.slice(0, -'SKILL.md'.length);
    const end = Math.min(cut(bytes, input.offset + input.length), bytes.length);
    const part = bytes.subarray(Math.min(input.offset, bytes.length), end);
    return {
      server: scope.servers.find(({ serverId }) => serverId === pinned.mcp.serverId)?.slug ?? '',
      uri,
      digest: sha256Hex(text),
      text: part.toString('utf8'),
      bytes: bytes.length,
      next: end < bytes.length ? end : null,
      verified: listed !== undefined || (isMain && skill.found === 'searched'),
      files: (skill.files ?? []).map((file) => file.uri.slice(base.length)),
    };
  }

  /** The skill as it was pinned; one that is another by now is not shown under the old one's name. */
  private async standing({ mcp, digest }: McpSkill): Promise<ServerSkill> {
    const row = await this.servers.find({ id: mcp.serverId });
    const hash = row === null ? null : offersOf(row).skills;
    const text = hash === null ? null : await this.offers.read(mcp.serverId, 'skills', hash);
    const skill = text === null ? undefined : Skills.parse(JSON.parse(text)).find(({ uri }) => uri === mcp.uri);
    if (skill?.digest !== digest) throw fault(mcpBroker.readServerSkill, 'SKILL_GONE');
    return skill;
  }

  private async bytesOf(
    scope: RunScope,
    wanted: { readonly serverId: string; readonly uri: string; readonly limitBytes: number },
    call: Call<Read>,
  ): Promise<Buffer> {
    const { serverId, uri, limitBytes } = wanted;
    const request = { serverId, requestId: sha256Hex(randomUUID()), method: 'resources/read' as const, params: { uri } };
    let result: JsonObject | undefined;
    try {
      ({ result } = await this.content.send(scope, request, call));
    } catch (error) {
      if (error instanceof Fault && error.code === 'UPSTREAM_ERROR') throw fault(mcpBroker.readServerSkill, 'FILE_NOT_FOUND');
      throw error;
    }
    // Only what fits one answer is read: a larger one is over every limit, or close to it.
    const bytes = result === undefined ? undefined : contentOf(result, uri);
    if (bytes === undefined || bytes.length > limitBytes) throw fault(mcpBroker.readServerSkill, 'FILE_TOO_LARGE', { limitBytes });
    return bytes;
  }

  private async check(
    bytes: Buffer,
    known: {
      readonly skill: ServerSkill;
      readonly isMain: boolean;
      readonly module: SkillModule;
      readonly listed: { readonly digest: string; readonly bytes: number | null } | undefined;
      readonly pinned: McpSkill;
    },
  ): Promise<void> {
    const { skill, isMain, module, listed, pinned } = known;
    const digest = sha256Hex(bytes);
    const expected = listed?.digest ?? (isMain && skill.found === 'searched' ? skill.digest : undefined);
    const isOther = (expected !== undefined && expected !== digest) || (listed?.bytes ?? bytes.length) !== bytes.length;
    const isSame = !isOther && (!isMain || skill.found === 'searched' || frontmatterHash(bytes, module) === skill.frontmatterHash);
    if (isSame) return;
    // It may have changed without a word: whoever begins now should see how it is.
    const row = await this.servers.find({ id: pinned.mcp.serverId });
    const [instanceId] = row === null ? [] : await this.servers.instancesOf(row.id, null);
    if (row !== null && instanceId !== undefined) await this.discovery.again(row, instanceId);
    throw fault(mcpBroker.readServerSkill, 'DIGEST_MISMATCH');
  }
}

function frontmatterHash(bytes: Buffer, { readYaml }: SkillModule): string | undefined {
  const parts = splitFrontmatter(bytes.toString('utf8'));
  const frontmatter = 'invalid' in parts ? undefined : readYaml(parts.yaml);
  return isObject(frontmatter) ? digestOf(frontmatter) : undefined;
}

/** The bytes of a resource: texts one after the other, or what stands in base64. */
function contentOf(result: JsonObject, uri: string): Buffer | undefined {
  const listed: readonly unknown[] = Array.isArray(result['contents']) ? result['contents'] : [];
  const contents = listed.filter(isObject);
  const own = contents.filter((part) => part['uri'] === uri || part['uri'] === undefined);
  const parts = own.length > 0 ? own : contents;
  const blob = parts.find((part) => typeof part['blob'] === 'string')?.['blob'];
  const texts = parts.flatMap((part) => (typeof part['text'] === 'string' ? [part['text']] : []));
  if (texts.length > 0) return Buffer.from(texts.join('\n'), 'utf8');
  return typeof blob === 'string' ? Buffer.from(blob, 'base64') : undefined;
}

/** A place at or before `at` that cuts no character of UTF-8 apart. */
function cut(bytes: Buffer, at: number): number {
  let end = Math.min(at, bytes.length);
  while (end > 0 && end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return end;
}
