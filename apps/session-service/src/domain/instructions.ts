import type { SnapshotRecord } from '@ambit/capability';

type Seen = Pick<SnapshotRecord, 'tools' | 'skills' | 'subagents'>;

/** What a job's instructions may hold. */
const INSTRUCTIONS_MAX = 256 * 1024;

const SECTION = /\{\{#(tool|skill) ([^{}\s]{1,200})\}\}([\s\S]*?)\{\{\/\1\}\}/g;
const LIST = /\{\{(tools|skills|subagents)\}\}/g;

/** Whether instructions speak of what a run sees, so that its record has to be read. */
export function speaksOfCatalogue(instructions: string): boolean {
  return instructions.includes('{{');
}

/**
 * An agent's instructions as one run gets them: lists of tools, skills and subagents, and sections about one tool or skill, follow the run's own
 * record, so that a prompt never names what the model does not have. Everything else stays as it was written.
 */
export function instructionsFor(instructions: string, record: Seen): string {
  const tools = new Set(record.tools.flatMap(({ name, qualifiedName }) => [name, qualifiedName]));
  const skills = new Set(record.skills.map(({ name }) => name));
  return instructions
    .replaceAll(SECTION, (_section, ...[kind, name = '', text = '']: string[]) =>
      (kind === 'tool' ? tools : skills).has(name) ? text : '',
    )
    .replaceAll(LIST, (_list, kind: string) => listOf(kind, record))
    .slice(0, INSTRUCTIONS_MAX);
}

function listOf(kind: string, { tools, skills, subagents }: Seen): string {
  const items = kind === 'tools' ? tools : kind === 'skills' ? skills : (subagents ?? []);
  return items.map(({ name, description }) => (description === '' ? `- ${name}` : `- ${name}: ${firstLine(description)}`)).join('\n');
}

const firstLine = (text: string): string => text.trim().split('\n', 1)[0]?.slice(0, 200) ?? '';
