import type { FileEntry } from '@ambit/contracts';
import type { Json } from './json-rpc.js';

/** What the skills extension lets a skill have; one with more is not shown. */
export const SKILL_LIMITS = { files: 512, bytes: 16 * 1024 * 1024 } as const;
const DIRECTORY = 'inode/directory';

type File = Pick<FileEntry, 'path' | 'bytes' | 'digest'>;

/** A place in a skill: its name, and a path below it, empty at its root. */
export interface SkillPlace {
  readonly name: string;
  readonly path: string;
}

/** The address of a file or folder of a skill. */
function skillUri({ name, path }: SkillPlace): string {
  return `skill://${[name, ...path.split('/').map(encodeURIComponent)].join('/')}`.replace(/\/$/, '');
}

/** The place that an address names; undefined where it is no address of a skill. */
export function skillPlace(uri: string): SkillPlace | undefined {
  const found = /^skill:\/\/([a-z0-9]+(?:-[a-z0-9]+)*)(?:\/(.*))?$/.exec(uri);
  if (found?.[1] === undefined) return undefined;
  try {
    return { name: found[1], path: (found[2] ?? '').split('/').map(decodeURIComponent).join('/') };
  } catch {
    return undefined;
  }
}

/** A skill as the extension lists it: every file with its digest, the frontmatter as it was written. Undefined where it has more than may be listed. */
export function skillEntry(
  name: string,
  { files, frontmatter }: { readonly files: readonly File[]; readonly frontmatter: Readonly<Json> },
): Json | undefined {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  if (files.length > SKILL_LIMITS.files || bytes > SKILL_LIMITS.bytes || frontmatter['name'] !== name) return undefined;
  const resources = files.map((file) => ({ uri: skillUri({ name, path: file.path }), digest: `sha256:${file.digest}`, size: file.bytes }));
  return { uri: skillUri({ name, path: 'SKILL.md' }), frontmatter, resources };
}

/** What stands directly in a folder of a skill, folders first; undefined where there is no such folder. */
export function childrenIn({ name, path }: SkillPlace, files: readonly File[]): Json[] | undefined {
  const prefix = path === '' ? '' : `${path}/`;
  const folders = new Set<string>();
  const found: Json[] = [];
  for (const file of files) {
    if (!file.path.startsWith(prefix)) continue;
    const [child = '', ...deeper] = file.path.slice(prefix.length).split('/');
    if (deeper.length > 0) folders.add(child);
    else found.push({ uri: skillUri({ name, path: file.path }), name: child, mimeType: mediaTypeOf(file.path), size: file.bytes });
  }
  if (folders.size + found.length === 0) return undefined;
  const shown = [...folders].map((child) => ({ uri: skillUri({ name, path: `${prefix}${child}` }), name: child, mimeType: DIRECTORY }));
  return [...shown, ...found].sort((one, other) => (String(one['uri']) < String(other['uri']) ? -1 : 1));
}

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  md: 'text/markdown',
  json: 'application/json',
  yaml: 'application/yaml',
  yml: 'application/yaml',
  html: 'text/html',
  csv: 'text/csv',
  js: 'text/javascript',
  mjs: 'text/javascript',
  py: 'text/x-python',
  sh: 'application/x-sh',
  txt: 'text/plain',
  pdf: 'application/pdf',
  png: 'image/png',
  jpg: 'image/jpeg',
  svg: 'image/svg+xml',
};

/** By the file's ending; what has none that is known is bytes. */
export function mediaTypeOf(path: string): string {
  return MEDIA_TYPES[/\.([a-z]+)$/.exec(path)?.[1] ?? ''] ?? 'application/octet-stream';
}
