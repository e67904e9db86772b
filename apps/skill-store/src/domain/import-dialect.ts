/** What of a tool's own differs from the Agent Skills specification: with `claude` a skill may take its name and description from elsewhere. */
export type FolderDialect = 'standard' | 'claude';

export interface Adapted {
  /** Lines to put in front of the frontmatter. */
  readonly lines: readonly string[];
  /** What the tool would do with this SKILL.md and Ambit does not. */
  readonly dropped: readonly string[];
}

/** Fields that tools act on; here they stay in the file and do nothing. */
export const WITHOUT_EFFECT: readonly string[] = ['model', 'effort', 'context', 'agent', 'hooks', 'shell', 'paths'];
const DESCRIPTION_MAX = 1_024;
const COMMAND = /(^|[\s(])!`[^`\n]+`/m;

/** What a SKILL.md of a tool needs to be one of the specification: its fields, its text and the name of its folder decide. */
export function adaptDialect(
  fields: Readonly<Record<string, unknown>>,
  body: string,
  { dialect, folder }: { readonly dialect: FolderDialect; readonly folder: string },
): Adapted {
  const dropped = WITHOUT_EFFECT.filter((field) => Object.hasOwn(fields, field)).map((field) => `the field "${field}" has no effect`);
  if (COMMAND.test(body)) dropped.push('commands in the text (!`…`) are not run');
  const lines: string[] = [];
  if (dialect === 'claude') {
    const name = folder.slice(folder.lastIndexOf('/') + 1);
    if (!Object.hasOwn(fields, 'name') && name !== '') lines.push(`name: ${JSON.stringify(name)}`);
    const description = textOfParagraph(body);
    if (!Object.hasOwn(fields, 'description') && description !== undefined) lines.push(`description: ${JSON.stringify(description)}`);
  }
  return { lines, dropped };
}

/** The first paragraph that is no heading, in one line; undefined where there is none. */
export function textOfParagraph(text: string): string | undefined {
  const paragraph = text
    .split(/\n\s*\n/)
    .map((part) => part.replace(/^#.*$/gm, '').trim())
    .find((part) => part !== '');
  return paragraph?.replace(/\s+/g, ' ').slice(0, DESCRIPTION_MAX);
}
