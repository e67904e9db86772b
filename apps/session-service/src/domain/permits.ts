import { canonicalJson, platformPermitsOf, type Filterable, type Subject } from '@ambit/capability';
import type { PermitSubject } from '@ambit/contracts';
import type { Seen, Whose } from './world.js';

/** Asked of one platform at most; what is beyond holds for nobody. */
const PERMITS_MAX = 100;

export const WHOLE_SUBJECT: readonly (keyof PermitSubject)[] = ['roles', 'scene', 'sceneId', 'userId'];

/** The permits of a platform that any capability of the world asks about. */
export function permitsAsked({ agent, ancestors }: Pick<Whose, 'agent' | 'ancestors'>, seen: Seen, adapter: string): readonly string[] {
  const slots = [agent, ...ancestors].flatMap(({ policy }) => Object.values(policy.subagents));
  return platformPermitsOf([...demandsIn(seen), ...slots], adapter).slice(0, PERMITS_MAX);
}

function* demandsIn({ tools, heads, skills, slots }: Seen): Iterable<Filterable> {
  if (tools.ok) {
    yield* tools.value.tools;
    for (const toolset of tools.value.toolsets) yield* toolset.tools;
  }
  if (heads.ok) yield* heads.value.servers;
  if (skills.ok) yield* skills.value.skills;
  if (slots.ok) for (const { agents } of slots.value.plugins) yield* agents;
}

interface AnswerTo {
  readonly adapter: string;
  readonly permits: readonly string[];
  readonly subject?: Subject;
  /** What of the subject counts. */
  readonly reads?: readonly (keyof PermitSubject)[];
}

/** Canonical, so that no separator in a value makes two keys equal. */
export function answerKey({ adapter, permits, subject, reads }: AnswerTo): string {
  const counted =
    subject === undefined || reads === undefined
      ? null
      : Object.fromEntries(reads.map((field) => [field, field === 'roles' ? [...new Set(subject.roles)].sort() : subject[field]]));
  return canonicalJson([adapter, [...permits], counted]);
}
