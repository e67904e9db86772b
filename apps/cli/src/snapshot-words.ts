import { cell, printable } from './table.js';

type Named = Readonly<Record<string, unknown>>;

/** A snapshot in words: what a run under it sees. */
export function snapshotWords(fingerprint: string, snapshot: Readonly<Record<string, unknown>>): string {
  const section = (title: string, items: readonly string[]) => `${title} (${items.length})\n${items.map((item) => `  ${item}\n`).join('')}`;
  return [
    `fingerprint ${fingerprint}\nagent ${cell(snapshot['agentId'])}\n`,
    section(
      'tools',
      list(snapshot['tools']).map((tool) => `${name(tool)}  ${cell(tool['effect'])}  of ${cell(tool['owner'])}`),
    ),
    section(
      'skills',
      list(snapshot['skills']).map((skill) => `${name(skill)}  of ${cell(skill['owner'])}  ${cell(skill['digest']).slice(0, 12)}`),
    ),
    section(
      'plugins',
      list(snapshot['plugins']).map((plugin) => `${cell(plugin['id'])} ${cell(plugin['version'])}`),
    ),
    section(
      'servers',
      list(snapshot['servers']).map(
        (server) =>
          `${cell(server['slug'])}  generation ${cell(server['configGeneration'])}  list ${cell(server['catalogHash']).slice(0, 12)}`,
      ),
    ),
  ].join('');
}

/** What changed between two snapshots, in words. */
export function diffWords(diff: Readonly<Record<string, unknown>>): string {
  if (diff['same'] === true) return 'the two are the same\n';
  const lines = Object.entries(diff).flatMap(([kind, part]) => {
    if (Array.isArray(part)) return part.map((text) => `~ ${printable(String(text))}`);
    if (typeof part !== 'object' || part === null) return [];
    const noun = NOUNS[kind] ?? kind;
    const of = (field: string): readonly unknown[] => toList(Reflect.get(part, field));
    return [
      ...of('added').map((text) => `+ ${noun} ${printable(String(text))}`),
      ...of('removed').map((text) => `- ${noun} ${printable(String(text))}`),
      ...of('changed').flatMap((item) => list([item]).map((entry) => `~ ${noun} ${name(entry)}: ${cell(entry['changes'])}`)),
    ];
  });
  return lines.map((line) => `${line}\n`).join('');
}

const NOUNS: Readonly<Record<string, string>> = {
  tools: 'tool',
  skills: 'skill',
  promptCommands: 'prompt',
  plugins: 'plugin',
  servers: 'server',
  subagents: 'subagent',
};
const name = (item: Named) => cell(item['name']);
const toList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const isNamed = (item: unknown): item is Named => typeof item === 'object' && item !== null;
const list = (value: unknown): readonly Named[] => toList(value).filter(isNamed);
