import { demands, SkillName, type SkillFacts } from '@ambit/contracts';
import type { z } from 'zod';

export type Facts = z.output<typeof SkillFacts>;
/** The strict verdict is in `warnings`; a skill that cannot be used at all has a reason instead of facts. */
export type SkillVerdict = { readonly facts: Facts; readonly warnings: readonly string[] } | { readonly invalid: string };

/** Fields of the Agent Skills specification, and those that hosts added and we honour. */
const KNOWN = new Set([
  'name',
  'description',
  'license',
  'compatibility',
  'metadata',
  'allowed-tools',
  'allowedTools',
  'platforms',
  'scopes',
  'permissions',
  'version',
  'argument-hint',
  'arguments',
  'when_to_use',
  'disable-model-invocation',
  'user-invocable',
]);
const DESCRIPTION_MAX = 1_024;

/** Judges parsed frontmatter: strict in its warnings, lenient in what it still loads. `folder` is the skill's folder name, where it has one. */
export function judgeSkill(frontmatter: unknown, folder: string | null): SkillVerdict {
  if (typeof frontmatter !== 'object' || frontmatter === null || Array.isArray(frontmatter))
    return { invalid: 'the frontmatter must be a map of fields' };
  const fields: Readonly<Record<string, unknown>> = { ...frontmatter };
  const warnings = Object.keys(fields)
    .filter((key) => !KNOWN.has(key))
    .map((key) => `unknown field "${key}" is kept and ignored`);
  const { name, description } = fields;
  if (typeof name !== 'string') return { invalid: 'the field "name" is missing' };
  if (!SkillName.safeParse(name).success)
    return { invalid: `the name "${name.slice(0, 80)}" must be lower-case letters, digits and single hyphens, at most 64` };
  if (typeof description !== 'string' || description.trim() === '') return { invalid: 'the field "description" is missing or empty' };
  if (description.length > DESCRIPTION_MAX)
    warnings.push(`the description has ${description.length} characters; ${DESCRIPTION_MAX} are kept`);
  if (folder !== null && folder !== name) warnings.push(`the folder is called "${folder}", the skill "${name}"`);
  const tools = allowedTools(fields);
  if ('invalid' in tools) return tools;
  const demanded = messageDemands(fields);
  if ('invalid' in demanded) return demanded;
  const platforms = list(fields.platforms);
  if (fields.platforms !== undefined && platforms === null) warnings.push('"platforms" must be a list of names; it is ignored');
  return {
    facts: {
      name,
      description: description.slice(0, DESCRIPTION_MAX),
      allowedTools: tools.names,
      platforms,
      ...demanded,
      disableModelInvocation: fields['disable-model-invocation'] === true,
      userInvocable: fields['user-invocable'] !== false,
      metadata: isMap(fields.metadata) ? { ...fields.metadata } : {},
    },
    warnings,
  };
}

/** What it demands of a message: a demand that cannot be read would let everybody have what was meant for some. */
function messageDemands(fields: Readonly<Record<string, unknown>>): Pick<Facts, 'scopes' | 'permissions'> | { readonly invalid: string } {
  const scopes = demands.scopes.safeParse(fields.scopes ?? undefined);
  if (!scopes.success) return { invalid: '"scopes" must be a list of private, group and channel' };
  const permissions = demands.permissions.safeParse(fields.permissions ?? undefined);
  if (!permissions.success) {
    const [issue] = permissions.error.issues;
    return { invalid: `"permissions" must be a list of permits: ${issue?.message ?? 'it is not one'}` };
  }
  return {
    ...(scopes.data === undefined ? {} : { scopes: scopes.data }),
    ...(permissions.data === undefined ? {} : { permissions: permissions.data }),
  };
}

/** Both spellings are read; two that differ leave no way to tell what was meant. */
function allowedTools(fields: Readonly<Record<string, unknown>>): { readonly names: string[] | null } | { readonly invalid: string } {
  const spellings = [fields['allowed-tools'], fields.allowedTools].filter((value) => value !== undefined && value !== null);
  const read = spellings.map((value) => (typeof value === 'string' ? splitTools(value) : list(value)));
  if (read.some((names) => names === null)) return { invalid: '"allowed-tools" must be a string of names or a list' };
  const [first, second] = read;
  if (first && second && JSON.stringify([...first].sort()) !== JSON.stringify([...second].sort()))
    return { invalid: '"allowed-tools" and "allowedTools" say different things' };
  return { names: first ?? null };
}

/** Names apart by spaces or commas, but not inside brackets: `Bash(git:*) Read`. */
function splitTools(text: string): string[] {
  return [...text.matchAll(/[^\s,()]+(?:\([^)]*\))?/g)].map(([name]) => name).slice(0, 200);
}

function list(value: unknown): string[] | null {
  return Array.isArray(value) && value.every((item) => typeof item === 'string') ? value.slice(0, 200) : null;
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
