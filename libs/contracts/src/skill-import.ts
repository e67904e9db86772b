import { z } from 'zod';
import { rpc, signal } from './kit/contract.js';
import { AgentId, Hex64, Uuid } from './nouns.js';
import { sessionService } from './session-service.js';
import { FileEntry, SkillName } from './skill-file.js';

/** How many skills one import looks at; more are imported by parts. */
const SKILLS = 256;
const Note = z.string().max(200);

/** Whose layout files or an archive have: where the tool keeps skills, and what it reads in a SKILL.md that others do not. */
export const ImportFormat = z.enum(['agents', 'claude-code', 'codex', 'cursor', 'cursor-project', 'opencode', 'goose', 'kilocode', 'copilot-user', 'windsurf', 'copilot', 'kiro', 'antigravity']).meta({ id: 'ImportFormat' });
export type ImportFormat = z.output<typeof ImportFormat>;
/** Where each tool keeps its skills, below a home folder or below a project: folders with a SKILL.md; of the last four, pages of Markdown. */
export const importPlaces: Readonly<Record<ImportFormat, string>> = {
  agents: '.agents/skills', 'claude-code': '.claude/skills', codex: '.codex/skills', cursor: '.cursor/skills', 'cursor-project': '.cursor/skills',
  opencode: '.opencode/skills', goose: '.config/goose/skills', kilocode: '.kilocode/skills', 'copilot-user': '.copilot/skills',
  windsurf: '.windsurf/rules', copilot: '.github/prompts', kiro: '.kiro/steering', antigravity: '.agent/workflows',
};

/** Where skills come from: an agent of Ambit, or uploaded bytes. No path of any machine is part of it; a file's path is its place below the folder that was sent. */
export const ImportSource = z
  .discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('agent'), agentId: AgentId }),
    z.strictObject({ kind: z.literal('files'), format: ImportFormat, files: z.array(FileEntry).min(1).max(4_096) }),
    z.strictObject({ kind: z.literal('archive'), format: ImportFormat, archive: Hex64.meta({ description: 'A zip or tar.gz, uploaded' }) }),
  ])
  .meta({ id: 'ImportSource' });
export type ImportSource = z.output<typeof ImportSource>;

/** Why a skill cannot be imported, or was not. */
export const ImportFailure = z.enum(['IMPORT_CONFLICT', 'SKILL_INVALID', 'SKILL_NOT_FOUND', 'PLUGIN_OWNED', 'SOURCE_CHANGED', 'TARGET_CHANGED']);
export type ImportFailure = z.output<typeof ImportFailure>;

/** What an import would do with one skill of the source. */
export const ImportCandidate = z
  .object({
    /** As the skill calls itself; of one that has no usable name, null. */
    name: SkillName.nullable(),
    /** Its folder in the source; of an agent's skill, its name. */
    folder: z.string().max(1_024),
    status: z.enum(['ready', 'conflict', 'unavailable']),
    /** Of what would be installed under its own name; execute takes nothing else. */
    digest: Hex64.nullable(),
    /** The version that the target has under this name. */
    replaces: Hex64.nullable(),
    /** The first free name, where the own one is taken. */
    suggestedName: SkillName.nullable(),
    /** Of an unavailable one. */
    code: ImportFailure.nullable(),
    reason: z.string().max(500).nullable(),
    /** What the source has and the target will not. */
    dropped: z.array(Note).max(20),
    warnings: z.array(Note).max(20),
    files: z.int().min(0),
    bytes: z.int().min(0),
  })
  .meta({ id: 'ImportCandidate' });
export type ImportCandidate = z.output<typeof ImportCandidate>;

export const ImportStrategy = z.enum(['skip', 'rename', 'overwrite']);
/** One skill to be imported, as it was previewed. */
export const ImportChoice = z
  .strictObject({
    name: SkillName,
    digest: Hex64,
    onConflict: ImportStrategy.default('skip'),
    newName: SkillName.optional().meta({ description: 'For rename: taken where it is free, else the first free one' }),
    replaces: Hex64.nullable().default(null).meta({ description: 'For overwrite: the version that is to go, as previewed' }),
  })
  .meta({ id: 'ImportChoice' });
export type ImportChoice = z.output<typeof ImportChoice>;

/** What became of one skill. */
export const ImportResult = z
  .object({
    name: SkillName,
    outcome: z.enum(['installed', 'renamed', 'overwritten', 'skipped', 'failed']),
    /** The name it has in the target, and the version there. */
    as: SkillName.nullable(),
    digest: Hex64.nullable(),
    code: ImportFailure.nullable(),
    reason: z.string().max(500).nullable(),
  })
  .meta({ id: 'ImportResult' });
export type ImportResult = z.output<typeof ImportResult>;

const Target = { agentId: AgentId.meta({ description: 'The agent that gets the skills' }), source: ImportSource };
const refused = {
  AGENT_UNKNOWN: sessionService.getAgent.errors.AGENT_UNKNOWN,
  IMPORT_TARGET: { status: 409, retry: 'never', message: 'This agent runs a program of its own and has no skills; name another', data: z.object({ agentId: AgentId }) },
  IMPORT_SAME_AGENT: { status: 400, retry: 'never', message: 'Source and target are one agent; name two' },
  IMPORT_REFUSED: { status: 400, retry: 'never', message: 'What was sent is unsafe, too large or holds no skill', data: z.object({ reason: z.string() }) },
  BLOB_MISSING: { status: 400, retry: 'never', message: 'Upload these files first', data: z.object({ digests: z.array(Hex64) }) },
} as const;

/** Skills brought from elsewhere: a preview, then exactly what it showed. */
export const skillImport = {
  previewImport: rpc('ambit.rpc.skill-store.v1.import.preview', {
    summary: 'What an import into an agent would do, skill by skill; changes nothing',
    input: z.strictObject({ ...Target, names: z.array(SkillName).max(SKILLS).optional().meta({ description: 'Only these' }) }),
    output: z.object({ skills: z.array(ImportCandidate).max(SKILLS), /** Files that belong to no skill. */ dropped: z.array(Note).max(50) }),
    errors: refused, idempotent: true, timeoutMs: 60_000,
  }),
  executeImport: rpc('ambit.rpc.skill-store.v1.import.execute', {
    summary: 'Import skills as previewed, each for itself; what changed since then fails and asks for a new preview',
    input: z.strictObject({
      ...Target,
      skills: z.array(ImportChoice).min(1).max(SKILLS).refine((skills) => new Set(skills.map(({ name }) => name)).size === skills.length, 'a skill is named twice'),
      importId: Uuid.optional().meta({ description: 'Its progress is told under this id' }),
    }),
    output: z.object({ results: z.array(ImportResult).max(SKILLS), failed: z.int().min(0) }),
    errors: { ...refused, IMPORT_BUSY: { status: 409, retry: 'later', message: 'Another import into this agent goes on; nothing was done' } }, timeoutMs: 120_000,
  }),
  importProgressed: signal('ambit.ctl.skill-store.v1.import.progressed.{importId}', { summary: 'How far an import is, to whoever listens now', payload: z.object({ importId: Uuid, done: z.int().min(0), total: z.int().min(1), name: SkillName }) }),
};
