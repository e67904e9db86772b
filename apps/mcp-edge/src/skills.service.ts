import { Bus } from '@ambit/bus';
import { BoundedMap, utf8Text } from '@ambit/capability';
import { Fault, skillStore, type Output } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { placeIn } from './domain/cursor.js';
import { CODE, RpcError, type Json } from './domain/json-rpc.js';
import { childrenIn, mediaTypeOf, skillEntry, skillPlace, SKILL_LIMITS, type SkillPlace } from './domain/shown-skills.js';
import type { Exchange } from './exchange.js';
import { Worlds } from './worlds.service.js';

/** Skills of one page: each that is not known yet is asked for. */
const PAGE = 50;
const KEPT = 2_000;
const CHILDREN = 512;

type Described = Output<typeof skillStore.describeSkill>;
interface Pinned {
  readonly agentId: string;
  readonly name: string;
  readonly digest: string;
}

/** The skills of a client's snapshot by the skills extension (SEP-2640): what is listed is what the snapshot pins, byte for byte. */
@Injectable()
export class Skills {
  /** By digest: what a version says of itself never changes. */
  readonly #described = new BoundedMap<string, Promise<Described>>(KEPT);

  constructor(
    private readonly bus: Bus,
    private readonly worlds: Worlds,
  ) {}

  async list(exchange: Exchange): Promise<Json> {
    const from = placeIn(exchange.params['cursor']);
    const pinned = await this.#pinned(exchange);
    const entries = await Promise.all(pinned.slice(from, from + PAGE).map((skill) => this.#entry(skill, exchange)));
    const skills = entries.filter((entry) => entry !== undefined);
    return { skills, ...(from + PAGE < pinned.length ? { nextCursor: String(from + PAGE) } : {}) };
  }

  async get(exchange: Exchange): Promise<Json> {
    const { place, uri } = this.#asked(exchange);
    const pinned = place?.path === 'SKILL.md' ? await this.#find(place, exchange) : undefined;
    const skill = pinned === undefined ? undefined : await this.#entry(pinned, exchange);
    if (skill === undefined) throw unknown(uri);
    return { skill };
  }

  async readDirectory(exchange: Exchange): Promise<Json> {
    const { place, uri } = this.#asked(exchange);
    const from = placeIn(exchange.params['cursor']);
    const pinned = place === undefined ? undefined : await this.#find(place, exchange);
    const described = pinned === undefined ? undefined : await this.#describe(pinned, exchange);
    const children = place === undefined || described === undefined ? undefined : childrenIn(place, described.files);
    if (children === undefined)
      throw new RpcError(CODE.invalidParams, `Not a directory of a skill: ${uri.slice(0, 200)}`, { data: { uri } });
    return {
      resources: children.slice(from, from + CHILDREN),
      ...(from + CHILDREN < children.length ? { nextCursor: String(from + CHILDREN) } : {}),
    };
  }

  /** A file of a skill; undefined where the address is none of a skill of the snapshot, so that a server may have it. */
  async read(exchange: Exchange): Promise<Json | undefined> {
    const { place, uri } = this.#asked(exchange);
    const pinned = place === undefined ? undefined : await this.#find(place, exchange);
    if (place === undefined || pinned === undefined) return undefined;
    const file = (await this.#describe(pinned, exchange))?.files.find(({ path }) => path === place.path);
    if (file === undefined || file.bytes > SKILL_LIMITS.bytes) throw unknown(uri);
    const bytes = await this.#bytes(pinned, place.path, exchange);
    if (bytes === undefined) throw unknown(uri);
    const text = utf8Text(bytes);
    const content = text === undefined ? { blob: bytes.toString('base64') } : { text };
    return { contents: [{ uri, mimeType: mediaTypeOf(place.path), ...content }] };
  }

  #asked({ params }: Exchange): { readonly place: SkillPlace | undefined; readonly uri: string } {
    const { uri } = params;
    if (typeof uri !== 'string' || uri === '' || uri.length > 8_192)
      throw new RpcError(CODE.invalidParams, 'params.uri is the address of a file or folder');
    return { place: skillPlace(uri), uri };
  }

  /** A server's own skills are read at that server, as it serves them. */
  async #pinned({ caller, naming }: Exchange): Promise<Pinned[]> {
    const { record } = await this.worlds.of(caller, naming);
    return record.skills.flatMap(({ name, origin, digest }) => (origin === 'mcp' ? [] : [{ agentId: record.agentId, name, digest }]));
  }

  async #find({ name }: SkillPlace, exchange: Exchange): Promise<Pinned | undefined> {
    return (await this.#pinned(exchange)).find((skill) => skill.name === name);
  }

  async #entry(skill: Pinned, exchange: Exchange): Promise<Json | undefined> {
    const described = await this.#describe(skill, exchange);
    return described === undefined ? undefined : skillEntry(skill.name, described);
  }

  /** Undefined where the skill was taken away since. */
  async #describe(skill: Pinned, { caller }: Exchange): Promise<Described | undefined> {
    const key = `${skill.name} ${skill.digest}`;
    const known = this.#described.get(key);
    const asked = known ?? this.bus.call(skillStore.describeSkill, skill, caller.identity);
    if (known === undefined) {
      this.#described.set(key, asked);
      asked.catch(() => this.#described.delete(key));
    }
    return asked.catch(goneAsUndefined);
  }

  async #bytes(skill: Pinned, path: string, { caller, signal }: Exchange): Promise<Buffer | undefined> {
    const parts: Buffer[] = [];
    for (let offset: number | null = 0; offset !== null;) {
      const part: Output<typeof skillStore.readSkill> | undefined = await this.bus
        .call(skillStore.readSkill, { ...skill, path, offset }, { ...caller.identity, signal })
        .catch(goneAsUndefined);
      if (part === undefined) return undefined;
      parts.push(part.text === undefined ? Buffer.from(part.data ?? '', 'base64') : Buffer.from(part.text));
      offset = part.next;
    }
    return Buffer.concat(parts);
  }
}

function goneAsUndefined(error: unknown): undefined {
  if (!(error instanceof Fault) || (error.code !== 'SKILL_NOT_FOUND' && error.code !== 'FILE_NOT_FOUND')) throw error;
}

const unknown = (uri: string) => new RpcError(CODE.invalidParams, `Unknown skill or file: ${uri.slice(0, 200)}`, { data: { uri } });
