import type { JsonObject, ServerSkill } from '@ambit/contracts';

/** Asks one server something; answers the result as it sent it. Throws what the server or the way to it throws. */
export type AskServer = (method: 'resources/read' | 'skills/list', params: JsonObject, timeoutMs: number) => Promise<JsonObject>;

export interface BuildInput {
  readonly ask: AskServer;
  /** What the server lists of its resources. */
  readonly resources: readonly JsonObject[];
  /** Aborts when the time for all of it is up, or the connection is gone. */
  readonly signal: AbortSignal;
}

export interface Built {
  readonly skills: readonly ServerSkill[];
  /** What is left out, and why, each a sentence. */
  readonly notes: readonly string[];
}

/** Finds the skills of one server. Throws where their list could not be had at all. */
export type SkillBuilder = (input: BuildInput) => Promise<Built>;

const KINDS = ['listed', 'searched'] as const;
type Kind = (typeof KINDS)[number];

/** Who builds skills is told here once, by what loads them; who uses them asks here and imports neither. */
export class SkillBuilders {
  readonly #builders = new Map<Kind, SkillBuilder>();

  register(kind: Kind, builder: SkillBuilder): void {
    if (this.#builders.has(kind)) throw new Error(`the builder of ${kind} skills is registered twice`);
    this.#builders.set(kind, builder);
  }

  /** Throws where one is missing: then skills are not switched on, instead of failing at each connection. */
  complete(): this {
    const missing = KINDS.filter((kind) => !this.#builders.has(kind));
    if (missing.length > 0) throw new Error(`no builder of ${missing.join(' and ')} skills is registered`);
    return this;
  }

  of(kind: Kind): SkillBuilder {
    const builder = this.#builders.get(kind);
    if (builder === undefined) throw new Error(`no builder of ${kind} skills is registered`);
    return builder;
  }
}
