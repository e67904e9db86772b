import { z } from 'zod';
import { rpc } from './kit/contract.js';
import { storedText } from './kit/stored-text.js';
import { AgentId, Hex64, Instant, ProjectId, Uuid, Version } from './nouns.js';
import { SkillName } from './skill-file.js';

/** A draft is text: what a model writes, and a person reads before it is anybody's skill. */
const DRAFT_CHARACTERS = 100_000;
const DraftFile = z.object({
  path: z.string().max(200).regex(/^(SKILL\.md|(references|templates|scripts|assets)\/([A-Za-z0-9_][A-Za-z0-9._-]*\/)*[A-Za-z0-9_][A-Za-z0-9._-]*)$/, 'SKILL.md, or a file under references/, templates/, scripts/ or assets/'),
  text: storedText(z.string().max(DRAFT_CHARACTERS)),
});
const DraftFiles = z
  .array(DraftFile)
  .min(1)
  .max(64)
  .refine((files) => files.reduce((sum, { text }) => sum + text.length, 0) <= DRAFT_CHARACTERS, `a draft has at most ${DRAFT_CHARACTERS} characters`);

export const SkillDraft = z
  .object({
    name: SkillName,
    description: z.string().max(1_024),
    digest: Hex64.meta({ description: 'What a person agrees to: another text has another digest' }),
    files: z.array(z.object({ path: z.string(), bytes: z.int() })).max(64),
    expiresAt: Instant,
  })
  .meta({ id: 'SkillDraft' });
export type SkillDraft = z.output<typeof SkillDraft>;

const unknown = { status: 404, retry: 'never', message: 'The session has no such draft; it may have changed, been installed, or been kept for its seven days' } as const;

/** Skills that a session proposes; part of the skill store's contracts. */
export const skillDrafts = {
  putDraft: rpc('ambit.rpc.skill-store.v1.draft.put', {
    summary: 'Write a draft of a session, in place of its earlier one of that name; kept for seven days', input: z.object({ sessionId: Uuid, files: DraftFiles }), output: SkillDraft,
    errors: { SKILL_INVALID: { status: 400, retry: 'never', message: 'This is not a usable skill', data: z.object({ reason: z.string() }) }, DRAFT_LIMIT: { status: 429, retry: 'never', message: 'The session has as many drafts as it may have; have one installed or discarded', data: z.object({ limit: z.int() }) } },
  }),
  listDrafts: rpc('ambit.rpc.skill-store.v1.draft.list', { summary: 'The drafts of a session', input: z.object({ sessionId: Uuid }), output: z.object({ items: z.array(SkillDraft).max(64) }), idempotent: true }),
  readDraft: rpc('ambit.rpc.skill-store.v1.draft.read', { summary: 'A draft with its texts', input: z.object({ sessionId: Uuid, name: SkillName }), output: SkillDraft.extend({ texts: z.array(z.object({ path: z.string(), text: z.string() })).max(64) }), errors: { DRAFT_UNKNOWN: unknown }, idempotent: true }),
  discardDraft: rpc('ambit.rpc.skill-store.v1.draft.discard', { summary: 'Throw a draft away', input: z.object({ sessionId: Uuid, name: SkillName }), output: z.object({ discarded: z.boolean() }), idempotent: true }),
  installDraft: rpc('ambit.rpc.skill-store.v1.draft.install', {
    summary: 'Make a draft of a session a skill of an agent: exactly the text that its digest stands for', input: z.object({ sessionId: Uuid, agentId: AgentId, projectId: ProjectId, name: SkillName, digest: Hex64 }), output: z.object({ agentId: AgentId, name: SkillName, digest: Hex64, version: Version }),
    errors: { DRAFT_UNKNOWN: unknown, NAME_TAKEN: { status: 409, retry: 'never', message: 'The agent has a skill of this name that is no draft of this session', data: z.object({ name: z.string() }) } },
  }),
};
