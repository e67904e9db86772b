import { textOfParagraph } from './import-dialect.js';

/** Tools whose unit is one page of Markdown, and no folder with a SKILL.md. */
export type PageDialect = 'windsurf' | 'copilot' | 'kiro' | 'antigravity';

/** How the names of such pages end; whatever else lies beside them is none. */
export const PAGE_ENDINGS: Readonly<Record<PageDialect, string>> = {
  windsurf: '.md',
  copilot: '.prompt.md',
  kiro: '.md',
  antigravity: '.md',
};

export interface Page {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly body: string;
  /** Without the folders before it. */
  readonly file: string;
}
export interface SkillOfPage {
  /** null where the page has nothing that could be one: then the validator says what is missing. */
  readonly name: string | null;
  readonly description: string | null;
  readonly dropped: readonly string[];
}

const NAME_LENGTH = 64;
const TAKEN: Readonly<Record<PageDialect, readonly string[]>> = {
  windsurf: [],
  copilot: ['description'],
  kiro: ['title', 'description'],
  antigravity: ['description'],
};

/** What a page of a tool is as a skill: a name and a description from where that tool has them; the text stays as it is. */
export function readPage(dialect: PageDialect, { fields, body, file }: Page): SkillOfPage {
  const ofFile = file.slice(0, -PAGE_ENDINGS[dialect].length);
  const title = dialect === 'windsurf' ? heading(body) : dialect === 'kiro' ? textOf(fields['title']) : undefined;
  return {
    name: slug(title ?? '') ?? slug(ofFile) ?? null,
    description: describe(dialect, fields, body) ?? null,
    dropped: Object.keys(fields)
      .filter((field) => !TAKEN[dialect].includes(field))
      .map((field) => `the field "${field.slice(0, 100)}" has no effect`),
  };
}

function describe(dialect: PageDialect, fields: Page['fields'], body: string): string | undefined {
  const paragraph = textOfParagraph(body);
  switch (dialect) {
    case 'windsurf':
      return textOfParagraph(body.split(/^## Steps\b/m)[0] ?? '') ?? paragraph;
    case 'kiro':
      return textOf(fields['description']) ?? quote(body) ?? paragraph;
    case 'copilot':
    case 'antigravity':
      return textOf(fields['description']) ?? paragraph;
  }
}

function heading(body: string): string | undefined {
  return textOf(/^# +(.+)$/m.exec(body)?.[1]);
}

/** The block quote that a page begins with, after its heading. */
function quote(body: string): string | undefined {
  const found = /^\s*(?:#[^\n]*\n\s*)?((?:>[^\n]*(?:\n|$))+)/.exec(body)?.[1];
  return found === undefined ? undefined : textOfParagraph(found.replace(/^> ?/gm, ''));
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined;
}

/** A legal name that people recognise the words in. */
function slug(text: string): string | undefined {
  const words = text
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-');
  const name = words.replace(/^-+/, '').slice(0, NAME_LENGTH).replace(/-+$/, '');
  return name === '' ? undefined : name;
}
