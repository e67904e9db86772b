import { AgentPreset } from '@ambit/contracts';
import { reservedNameOf, splitFrontmatter } from '@ambit/capability';
import { sentence, TEXT_BYTES, type PackageFiles } from './package-files.js';

const PRESET = /^agents\/([^/]+)\.md$/;
const PRESETS_MAX = 100;

/** The presets in `agents/*.md`: front matter of one line a field, and below it what the specialist is told. A bad one costs itself alone. */
export function readPresets({ paths, texts }: PackageFiles, warnings: string[]): AgentPreset[] {
  const files = paths.filter((path) => PRESET.test(path)).sort();
  const presets = files.flatMap((path): AgentPreset[] => {
    const read = presetOf(path, texts.get(path));
    if (typeof read !== 'string') return [read];
    warnings.push(`${path}: ${read}; it is left out`);
    return [];
  });
  const once = presets.filter(({ name }, index) => {
    const isFirst = presets.findIndex((one) => one.name === name) === index;
    if (!isFirst) warnings.push(`agents: there are two presets "${name}"; the first is taken`);
    return isFirst;
  });
  return once.slice(0, PRESETS_MAX);
}

/** What a file says; a sentence where it is no preset. */
function presetOf(path: string, text: string | null | undefined): AgentPreset | string {
  if (text === null || text === undefined) return `it is larger than ${TEXT_BYTES} bytes`;
  const cut = splitFrontmatter(text);
  if (!('yaml' in cut)) return 'it has no front matter';
  const fields = fieldsOf(cut.yaml);
  if (typeof fields === 'string') return fields;
  const name = fields.get('name') ?? PRESET.exec(path)?.[1];
  if (name !== undefined && reservedNameOf(name) !== null) return `${name} is a name of the platform's own`;
  const parsed = AgentPreset.safeParse({
    name,
    description: fields.get('description'),
    instructions: cut.body.trim(),
    tools: listOf(fields.get('tools')),
    platforms: listOf(fields.get('platforms')),
    scopes: listOf(fields.get('scopes')),
    permissions: permitsOf(fields.get('permissions')),
  });
  return parsed.success ? parsed.data : sentence(parsed.error);
}

function fieldsOf(yaml: string): ReadonlyMap<string, string> | string {
  const fields = new Map<string, string>();
  for (const line of yaml.split(/\r?\n/)) {
    if (line.trim() === '' || line.trimStart().startsWith('#')) continue;
    const [, key, value] = /^([A-Za-z][A-Za-z0-9_-]*):\s*(.*?)\s*$/.exec(line) ?? [];
    if (key === undefined || value === undefined) return `"${line.slice(0, 80)}" is no field with its value on one line`;
    if (fields.has(key)) return `the field "${key}" stands there twice`;
    fields.set(key, value.replace(/^(["'])(.*)\1$/, '$2'));
  }
  return fields;
}

/** `a, b` or `[a, b]`. */
const listOf = (text: string | undefined): string[] | undefined =>
  text
    ?.replace(/^\[(.*)\]$/, '$1')
    .split(/[\s,]+/)
    .map((one) => one.replace(/^(["'])(.*)\1$/, '$2'))
    .filter((one) => one !== '');

/** As lists are, but for commas within brackets. */
const permitsOf = (text: string | undefined): string[] | undefined =>
  text === undefined ? undefined : [...text.replace(/^\[(.*)\]$/, '$1').matchAll(/[^\s,()]+(?:\([^)]*\))?/g)].map(([one]) => one);
