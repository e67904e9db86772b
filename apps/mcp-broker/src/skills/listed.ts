import type { ServerSkill } from '@ambit/contracts';
import { listedSkill, SKILLS_OF_A_SERVER } from '../domain/server-skill.js';
import type { Built, BuildInput } from './builders.js';

const PAGES = 32;
const PAGE_MS = 10_000;

/** The skills of a server that lists them itself. Nothing of them is read: that is for whoever uses one. */
export async function listedSkills({ ask, signal }: BuildInput): Promise<Built> {
  const skills = new Map<string, ServerSkill>();
  const notes: string[] = [];
  const seen = new Set<string>();
  let cursor: string | undefined;
  for (let page = 1; ; page++) {
    signal.throwIfAborted();
    const answer = await ask('skills/list', cursor === undefined ? {} : { cursor }, PAGE_MS);
    const entries: readonly unknown[] = Array.isArray(answer['skills']) ? answer['skills'] : [];
    for (const entry of entries) {
      const found = listedSkill(entry);
      if ('invalid' in found) notes.push(`A listed skill ${found.invalid}`);
      else if (skills.size >= SKILLS_OF_A_SERVER && !skills.has(found.uri))
        notes.push(`Only ${SKILLS_OF_A_SERVER} skills of one server are taken`);
      else skills.set(found.uri, found);
    }
    const next = answer['nextCursor'];
    if (typeof next !== 'string') break;
    if (seen.has(next) || page >= PAGES) {
      notes.push('The list of skills repeats a cursor, or has too many pages; reading stopped there');
      break;
    }
    seen.add(next);
    cursor = next;
  }
  return { skills: [...skills.values()], notes };
}
