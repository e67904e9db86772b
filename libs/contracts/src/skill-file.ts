import { z } from 'zod';
import { Hex64 } from './nouns.js';

export const SkillName = z.string().regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'lower-case letters, digits and single hyphens').max(64).meta({ id: 'SkillName' });
export const FilePath = z.string().min(1).max(1_024).meta({ description: 'Relative, forward slashes, no . or .. segment' });
export const FileEntry = z.object({ path: FilePath, mode: z.enum(['file', 'executable']).default('file'), bytes: z.int().min(0).max(64 * 1024 * 1024), digest: Hex64 }).meta({ id: 'FileEntry' });
export type FileEntry = z.output<typeof FileEntry>;
