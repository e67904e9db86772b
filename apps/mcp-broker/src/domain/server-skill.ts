import { byCodeUnit, digestOf, isObject, sha256Hex, splitFrontmatter } from '@ambit/capability';
import { ServerSkill, SkillName, type JsonObject } from '@ambit/contracts';

/** Bytes of a SKILL.md that a searched server may have. */
export const SKILL_FILE_BYTES = 256 * 1024;
export const SKILLS_OF_A_SERVER = 64;
const URI_CHARACTERS = 2_048;
const DESCRIPTION_CHARACTERS = 1_024;
const HINT_CHARACTERS = 500;
const FILE = '/SKILL.md';

/** A skill, or why something is none, as the end of a sentence about it. */
export type Found = ServerSkill | { readonly invalid: string };

// eslint-disable-next-line no-control-regex -- control characters are what is refused
const CONTROL = /[\u0000-\u0020\u007f]/;

/** The path of a skill's folder in its address; undefined where the address is none of a SKILL.md. */
function skillPathOf(uri: string): string | undefined {
  if (uri.length > URI_CHARACTERS || CONTROL.test(uri) || !uri.endsWith(FILE)) return undefined;
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(uri)?.[0];
  const path = scheme === undefined ? '' : uri.slice(scheme.length, -FILE.length);
  return path === '' || path.split('/').some((segment) => segment === '' || segment === '.' || segment === '..') ? undefined : path;
}

/** Whether an address is one that a server without the extension may have a skill at. */
export const isSearched = (uri: string): boolean => /^skill:\/\//i.test(uri) && skillPathOf(uri) !== undefined;

/** What a searched server's SKILL.md makes of itself. `resource` is how the server lists it; `parse` reads YAML. */
export function searchedSkill(
  { uri, text, resource }: { readonly uri: string; readonly text: string; readonly resource: JsonObject },
  parse: (yaml: string) => unknown,
): Found {
  const path = skillPathOf(uri);
  if (path === undefined) return { invalid: 'has no address of a skill' };
  if (Buffer.byteLength(text) > SKILL_FILE_BYTES) return { invalid: `is larger than ${SKILL_FILE_BYTES} bytes` };
  const parts = splitFrontmatter(text);
  // A file without frontmatter is a skill all the same here: its server names it by its address.
  const frontmatter = 'invalid' in parts ? {} : parse(parts.yaml);
  if (!isObject(frontmatter)) return { invalid: 'has a frontmatter that is no map of fields' };
  const name = lastOf(path);
  if (!SkillName.safeParse(name).success) return { invalid: `is called "${name.slice(0, 80)}", which is no name of a skill` };
  if (frontmatter['name'] !== undefined && frontmatter['name'] !== name)
    return { invalid: `calls itself "${String(frontmatter['name']).slice(0, 80)}", and its address says "${name}"` };
  const body = 'invalid' in parts ? text : parts.body;
  const description = firstText([frontmatter['description'], resource['description'], resource['name'], firstLine(body)]);
  return {
    ...common({ uri, path, name, frontmatter }),
    description: description.slice(0, DESCRIPTION_CHARACTERS),
    digest: sha256Hex(text),
    found: 'searched',
    files: null,
  };
}

/** What an entry of a server's own list of skills is. */
export function listedSkill(entry: unknown): Found {
  if (!isObject(entry) || typeof entry['uri'] !== 'string') return { invalid: 'is no entry with an address' };
  const { uri, frontmatter, resources } = entry;
  const path = skillPathOf(uri);
  if (path === undefined) return { invalid: 'has no address of a skill' };
  if (!isObject(frontmatter)) return { invalid: 'has no frontmatter' };
  const { name, description } = frontmatter;
  if (typeof name !== 'string' || !SkillName.safeParse(name).success) return { invalid: 'has no name of a skill' };
  if (name !== lastOf(path)) return { invalid: `calls itself "${name}", and its address says "${lastOf(path).slice(0, 80)}"` };
  if (typeof description !== 'string' || description.trim() === '') return { invalid: 'has no description' };
  const files = resources === 'dynamic' ? null : filesOf(uri, resources);
  if (files !== null && 'invalid' in files) return files;
  const skill = {
    ...common({ uri, path, name, frontmatter }),
    description: description.slice(0, DESCRIPTION_CHARACTERS),
    digest: digestOf({ frontmatter, files }),
    found: 'listed' as const,
    files,
  };
  const read = ServerSkill.safeParse(skill);
  return read.success ? read.data : { invalid: 'is larger than a skill may be' };
}

function filesOf(uri: string, resources: unknown): Exclude<ServerSkill['files'], null> | { readonly invalid: string } {
  if (!Array.isArray(resources)) return { invalid: 'does not list its files' };
  const base = uri.slice(0, -FILE.length + 1);
  const files: Exclude<ServerSkill['files'], null> = [];
  const listed: readonly unknown[] = resources;
  for (const file of listed) {
    if (!isObject(file) || typeof file['uri'] !== 'string' || typeof file['digest'] !== 'string')
      return { invalid: 'lists a file without address or digest' };
    const digest = /^sha256:([0-9a-f]{64})$/.exec(file['digest'])?.[1];
    if (digest === undefined) return { invalid: 'lists a file whose digest is no sha256' };
    if (!file['uri'].startsWith(base)) return { invalid: 'lists a file that is not its own' };
    files.push({ uri: file['uri'], digest, bytes: typeof file['size'] === 'number' ? file['size'] : null });
  }
  if (!files.some((file) => file.uri === uri)) return { invalid: 'does not list its SKILL.md' };
  return files.sort((left, right) => byCodeUnit(left.uri, right.uri));
}

/** Of all that a SKILL.md may say of tools, hooks, models and shells, nothing is read: only who may use it, and how it is called. */
function common(of: { readonly uri: string; readonly path: string; readonly name: string; readonly frontmatter: JsonObject }) {
  const { uri, path, name, frontmatter } = of;
  const hint = frontmatter['argument-hint'];
  return {
    uri,
    name,
    path,
    frontmatterHash: digestOf(frontmatter),
    modelInvocable: frontmatter['disable-model-invocation'] !== true,
    userInvocable: frontmatter['user-invocable'] !== false,
    argumentHint: typeof hint === 'string' ? hint.slice(0, HINT_CHARACTERS) : null,
  };
}

const lastOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);
const firstLine = (body: string): string =>
  body
    .split('\n')
    .map((line) => line.replace(/^#+\s*/, '').trim())
    .find((line) => line !== '') ?? '';

function firstText(candidates: readonly unknown[]): string {
  const found = candidates.find((one) => typeof one === 'string' && one.trim() !== '');
  return typeof found === 'string' ? found.trim() : 'A skill without a description';
}

/** The address of a file beside a SKILL.md; undefined where the path leads anywhere else. An address is one only below the skill's own folder. */
export function fileUriOf(skillUri: string, path: string): string | undefined {
  const base = skillUri.slice(0, -FILE.length + 1);
  const relative = path.startsWith(base) ? path.slice(base.length) : path;
  if (CONTROL.test(relative) || relative.includes('\\') || /^[a-z][a-z0-9+.-]*:/i.test(relative) || relative.includes('%'))
    return undefined;
  const isOutside = relative.split('/').some((segment) => segment === '' || segment === '.' || segment === '..');
  return isOutside || relative.includes('?') || relative.includes('#') ? undefined : base + relative;
}
