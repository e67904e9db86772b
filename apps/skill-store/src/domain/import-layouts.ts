import type { ImportFormat } from '@ambit/contracts';
import type { FolderDialect } from './import-dialect.js';
import { PAGE_ENDINGS, type PageDialect } from './import-page.js';
import { inPathOrder } from './skill-folder.js';

export type Dialect = FolderDialect | PageDialect;
/** How each tool writes its skills. */
export const DIALECTS: Readonly<Record<ImportFormat, Dialect>> = {
  agents: 'standard',
  'claude-code': 'claude',
  codex: 'claude',
  cursor: 'standard',
  'cursor-project': 'standard',
  opencode: 'standard',
  goose: 'standard',
  kilocode: 'standard',
  'copilot-user': 'standard',
  windsurf: 'windsurf',
  copilot: 'copilot',
  kiro: 'kiro',
  antigravity: 'antigravity',
};

/** One skill's folder among the files of a source. */
export interface SkillFolder {
  /** With forward slashes; '' where the source itself is one skill. Of a tool that writes pages, the page. */
  readonly folder: string;
  /** Path in the source → path in the skill. */
  readonly files: ReadonlyMap<string, string>;
  /** Of tools, not of the author; they stay behind. */
  readonly dropped: readonly string[];
}
export interface Sorted {
  /** In order of their folders. */
  readonly skills: readonly SkillFolder[];
  /** Folders whose SKILL.md is spelled otherwise. */
  readonly misspelled: readonly string[];
  /** Files that belong to no skill. */
  readonly loose: readonly string[];
}

const DEPTH = 10;
const OF_TOOLS = /(^|\/)(\.git|\.DS_Store|Thumbs\.db|__MACOSX|node_modules)(\/|$)/;

/**
 * Sorts the files of a source into skills. Where the layout's own folder is among them, only what lies there counts; else the source
 * is taken for that folder, for one skill, or for a folder of them. A SKILL.md below another's folder is a file of that skill.
 */
export function sortIntoSkills(paths: readonly string[], place: string): Sorted {
  const sorted = [...paths].sort();
  const inPlace = sorted.filter((path) => placeOf(path, place) !== undefined);
  const considered = inPlace.length > 0 ? inPlace : sorted;
  const folders: string[] = [];
  const misspelled: string[] = [];
  for (const path of [...considered].sort((one, other) => depthOf(one) - depthOf(other) || (one < other ? -1 : 1))) {
    const base = placeOf(path, place) ?? '';
    const folder = path.split('/').slice(0, -1).join('/');
    const name = path.slice(path.lastIndexOf('/') + 1);
    if (name.toLowerCase() !== 'skill.md' || !isScanned(folder.slice(base.length))) continue;
    if (folders.some((taken) => isBelow(path, taken))) continue;
    if (name === 'SKILL.md') folders.push(folder);
    else misspelled.push(folder);
  }
  const skills = folders.sort(inPathOrder).map((folder) => {
    const below = considered.filter((path) => isBelow(path, folder));
    const start = folder === '' ? 0 : folder.length + 1;
    const isOfTools = (path: string): boolean => OF_TOOLS.test(path.slice(start));
    const kept = below.filter((path) => !isOfTools(path));
    return { folder, files: new Map(kept.map((path) => [path, path.slice(start)])), dropped: below.filter(isOfTools) };
  });
  const taken = new Set(skills.flatMap(({ files, dropped }) => [...files.keys(), ...dropped]));
  return {
    skills,
    misspelled: misspelled.filter((folder) => !folders.includes(folder)).sort(),
    loose: sorted.filter((path) => !taken.has(path)),
  };
}

/** Sorts the files of a tool that writes pages: each page that lies directly in its folder is a skill, whatever else there is is none. */
export function sortIntoPages(paths: readonly string[], place: string, dialect: PageDialect): Sorted {
  const sorted = [...paths].sort();
  const inPlace = sorted.filter((path) => placeOf(path, place) !== undefined);
  const inFolder = (path: string): string => path.slice(placeOf(path, place)?.length ?? 0).replace(/^\//, '');
  const pages = (inPlace.length > 0 ? inPlace : sorted).filter(
    (path) => path.endsWith(PAGE_ENDINGS[dialect]) && !/(^|\/)\./.test(inFolder(path)),
  );
  const depth = Math.min(...pages.map((path) => depthOf(inFolder(path))));
  const taken = new Set(pages.filter((path) => depthOf(inFolder(path)) === depth));
  return {
    skills: [...taken].map((path) => ({ folder: path, files: new Map([[path, 'SKILL.md']]), dropped: [] })),
    misspelled: [],
    loose: sorted.filter((path) => !taken.has(path)),
  };
}

/** The part of a path up to the end of the layout's folder. */
function placeOf(path: string, place: string): string | undefined {
  const at = `/${path}`.indexOf(`/${place}/`);
  return at < 0 ? undefined : path.slice(0, at + place.length);
}

function isBelow(path: string, folder: string): boolean {
  return folder === '' || path.startsWith(`${folder}/`);
}

function depthOf(path: string): number {
  return path.split('/').length;
}

/** Staging, backup and hidden folders are never listed. */
function isScanned(folder: string): boolean {
  const parts = folder.split('/').filter((part) => part !== '');
  return parts.length <= DEPTH && !parts.some((part) => part.startsWith('.') || part.includes('.backup-') || OF_TOOLS.test(part));
}
