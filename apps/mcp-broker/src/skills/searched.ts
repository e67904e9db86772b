import { isObject } from '@ambit/capability';
import type { JsonObject, ServerSkill } from '@ambit/contracts';
import { sentenceOf } from '@ambit/mcp';
import { parse } from 'yaml';
import { isSearched, searchedSkill, SKILLS_OF_A_SERVER } from '../domain/server-skill.js';
import type { Built, BuildInput } from './builders.js';

const AT_ONCE = 8;
const READ_MS = 10_000;

/** The skills of a server that does not list them: every SKILL.md among its resources is read. One that cannot be costs itself alone. */
export async function searchedSkills({ ask, resources, signal }: BuildInput): Promise<Built> {
  const candidates = resources.filter(({ uri }) => typeof uri === 'string' && isSearched(uri));
  const skills: ServerSkill[] = [];
  const notes: string[] = candidates.length > SKILLS_OF_A_SERVER ? [`Only ${SKILLS_OF_A_SERVER} skills of one server are taken`] : [];
  const waiting = candidates.slice(0, SKILLS_OF_A_SERVER);
  const read = async (resource: JsonObject): Promise<void> => {
    const uri = String(resource['uri']);
    try {
      const text = textOf(await ask('resources/read', { uri }, READ_MS));
      const found = text === undefined ? { invalid: 'has no text' } : searchedSkill({ uri, text, resource }, readYaml);
      if ('invalid' in found) notes.push(`${uri.slice(0, 200)} ${found.invalid}`);
      else skills.push(found);
    } catch (error) {
      notes.push(`${uri.slice(0, 200)} could not be read: ${sentenceOf(error)}`);
    }
  };
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined && !signal.aborted; next = waiting.shift()) await read(next);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  if (waiting.length > 0) notes.push(`The time was up before ${waiting.length} of them were read`);
  return { skills: skills.sort((left, right) => (left.uri < right.uri ? -1 : 1)), notes };
}

/** The text parts of a resource, one after the other; undefined where it has none. */
export function textOf(result: JsonObject): string | undefined {
  const contents: readonly unknown[] = Array.isArray(result['contents']) ? result['contents'] : [];
  const texts = contents.flatMap((part) => (isObject(part) && typeof part['text'] === 'string' ? [part['text']] : []));
  return texts.length === 0 ? undefined : texts.join('\n');
}

/** Plain YAML: no aliases, no repeated keys; undefined where it is none. */
export function readYaml(yaml: string): unknown {
  try {
    const value: unknown = parse(yaml, { uniqueKeys: true, strict: true, merge: false, maxAliasCount: 0 });
    return value ?? {};
  } catch {
    return undefined;
  }
}
