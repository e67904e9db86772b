import { z } from 'zod';
import { auditEvent, auditReading } from './audit.js';
import { event, rpc } from './kit/contract.js';
import { AgentId, demands, Hex64, Instant, JsonObject, Owner, page, PageInput, ProjectId, SetName, Slug, Version } from './nouns.js';
import { Switch, SwitchName } from './mcp-skills.js';
import { refusals } from './refusals.js';
import { FileEntry, FilePath, SkillName } from './skill-file.js';
import { skillDrafts } from './skill-draft.js';
import { skillImport } from './skill-import.js';

/** A script that may be enabled: what runs it is read off its name, and nothing in it means anything to a shell. */
export const ScriptPath = z
  .string()
  .max(200)
  .regex(/^scripts\/([A-Za-z0-9_][A-Za-z0-9._-]*\/)*[A-Za-z0-9_][A-Za-z0-9._-]*\.(py|js|mjs|cjs|sh)$/, 'a .py, .js, .mjs, .cjs or .sh file under scripts/, its names of letters, digits, dots, _ and -')
  .meta({ id: 'ScriptPath' });

/** What a SKILL.md says of itself, after a lenient load; `warnings` hold the strict verdict. */
export const SkillFacts = z.object({
  name: SkillName,
  description: z.string().min(1).max(1_024),
  allowedTools: z.array(z.string().max(200)).max(200).nullable(),
  platforms: z.array(z.string().max(100)).max(20).nullable(),
  scopes: demands.scopes,
  permissions: demands.permissions,
  disableModelInvocation: z.boolean(),
  userInvocable: z.boolean(),
  metadata: JsonObject,
});
export const Skill = SkillFacts.extend({
  agentId: AgentId,
  projectId: ProjectId,
  /** sha256 of the canonical tree of (path, mode, size, digest). */
  digest: Hex64,
  owner: Owner,
  origin: z.enum(['owned', 'plugin']),
  enabled: z.boolean(),
  valid: z.boolean(),
  warnings: z.array(z.string().max(500)).max(50),
  files: z.int().min(0),
  bytes: z.int().min(0),
  /** Those that an administrator enabled of exactly this version. */
  scripts: z.array(ScriptPath).max(512).default([]),
  source: z.string().max(500),
  set: SetName,
  version: Version,
  updatedAt: Instant,
}).meta({ id: 'Skill' });
export type Skill = z.output<typeof Skill>;

/** A skill as ingress sees it. */
export const EffectiveSkill = SkillFacts.extend({ agentId: AgentId, owner: Owner, origin: z.enum(['owned', 'plugin', 'builtin']), digest: Hex64, shadows: z.string().max(200).nullable(), /** Enabled ones, by path. */ scripts: z.array(ScriptPath).max(512).default([]) }).meta({ id: 'EffectiveSkill' });
export type EffectiveSkill = z.output<typeof EffectiveSkill>;

const skillUnknown = { status: 404, retry: 'never', message: 'The agent has no such skill' } as const;
const blobMissing = { status: 400, retry: 'never', message: 'Upload these files first', data: z.object({ digests: z.array(Hex64) }) } as const;
const invalid = { status: 400, retry: 'never', message: 'This is not a usable skill', data: z.object({ reason: z.string() }) } as const;
const scriptUnknown = { status: 404, retry: 'never', message: 'The skill has no such script' } as const;
/** Bytes of a file, at most 256 KiB a call; the chunk that completes the file is checked against the digest. */
const blobPut = { input: z.object({ digest: Hex64, bytes: z.int().min(0).max(200 * 1024 * 1024), offset: z.int().min(0), data: z.string().max(350_000).meta({ description: 'base64' }) }), output: z.object({ have: z.int().min(0), complete: z.boolean() }), errors: { BLOB_DIGEST: { status: 400, retry: 'never', message: 'The bytes do not hash to the digest given; send them again' }, BLOB_OFFSET: { status: 409, retry: 'never', message: 'Go on at the offset in the data', data: z.object({ have: z.int() }) } } } as const;

const SkillSwitch = Switch.extend({ name: SwitchName.extract(['skills']) });

export const skillStore = {
  putBlob: rpc('ambit.rpc.skill-store.v1.blob.put', { summary: 'Upload a file or archive, a chunk at a time', ...blobPut }),
  putSkill: rpc('ambit.rpc.skill-store.v1.skill.put', {
    summary: 'Give an agent a skill from uploaded files or an uploaded zip; moves one pointer',
    input: z.object({ agentId: AgentId, projectId: ProjectId.default('default'), files: z.array(FileEntry).max(4_096).optional(), archive: Hex64.optional(), source: z.string().max(500).default('upload'), set: SetName.default(null), ifVersion: z.int().min(0).optional() }), output: Skill,
    errors: { SKILL_INVALID: invalid, BLOB_MISSING: blobMissing, ARCHIVE_REFUSED: { status: 400, retry: 'never', message: 'The archive is unsafe or too large', data: z.object({ reason: z.string() }) }, VERSION_CONFLICT: { status: 409, retry: 'never', message: 'It changed since you read it; read it again', data: z.object({ version: z.int() }) } }, timeoutMs: 30_000,
  }),
  getSkill: rpc('ambit.rpc.skill-store.v1.skill.get', { summary: 'One skill of an agent', input: z.object({ agentId: AgentId, name: SkillName }), output: Skill.extend({ tree: z.array(FileEntry) }), errors: { SKILL_NOT_FOUND: skillUnknown }, idempotent: true }),
  listSkills: rpc('ambit.rpc.skill-store.v1.skill.list', { summary: 'Skills of an agent, or of all, invalid ones included', input: z.object({ agentId: AgentId.optional(), projectId: ProjectId.optional(), set: Slug.optional(), ...PageInput }), output: page(Skill), idempotent: true }),
  enableSkill: rpc('ambit.rpc.skill-store.v1.skill.enable', { summary: 'Switch a skill on', input: z.object({ agentId: AgentId, name: SkillName }), output: Skill, errors: { SKILL_NOT_FOUND: skillUnknown }, idempotent: true }),
  disableSkill: rpc('ambit.rpc.skill-store.v1.skill.disable', { summary: 'Switch a skill off; it stays in the management view', input: z.object({ agentId: AgentId, name: SkillName }), output: Skill, errors: { SKILL_NOT_FOUND: skillUnknown }, idempotent: true }),
  deleteSkill: rpc('ambit.rpc.skill-store.v1.skill.delete', { summary: 'Take a skill from an agent', input: z.object({ agentId: AgentId, name: SkillName }), output: z.object({ deleted: z.boolean() }), errors: { SKILL_NOT_FOUND: skillUnknown, PLUGIN_OWNED: { status: 409, retry: 'never', message: 'A plugin contributes this skill; disable the plugin instead', data: z.object({ owner: Owner }) } } }),
  effectiveSkills: rpc('ambit.rpc.skill-store.v1.skill.effective', { summary: 'The valid, enabled skills an agent could have, with its plugins’ contributions; owned ones win', input: z.object({ agentId: AgentId, plugins: z.array(z.string().max(64)).max(1_000).nullable().meta({ description: 'null = of every plugin' }) }), output: z.object({ epoch: z.int(), skills: z.array(EffectiveSkill).max(1_000) }), idempotent: true }),
  readSkill: rpc('ambit.rpc.skill-store.v1.skill.read', {
    summary: 'A range of one file of a skill, by the digest that a snapshot pins', input: z.object({ agentId: AgentId, name: SkillName, digest: Hex64.optional(), path: FilePath.default('SKILL.md'), offset: z.int().min(0).default(0), length: z.int().min(1).max(256 * 1024).default(256 * 1024) }),
    output: z.object({ text: z.string().optional(), data: z.string().optional().meta({ description: 'base64, where the bytes are not UTF-8 text' }), bytes: z.int(), next: z.int().nullable(), files: z.array(z.string()).max(512) }), errors: { SKILL_NOT_FOUND: skillUnknown, FILE_NOT_FOUND: { status: 404, retry: 'never', message: 'The skill has no such file' } }, idempotent: true,
  }),
  describeSkill: rpc('ambit.rpc.skill-store.v1.skill.describe', {
    summary: 'The files of a skill with their digests, and its frontmatter as it was written, by the digest that a snapshot pins',
    input: z.object({ agentId: AgentId, name: SkillName, digest: Hex64 }), output: z.object({ files: z.array(FileEntry).max(4_096), frontmatter: JsonObject }), errors: { SKILL_NOT_FOUND: skillUnknown }, idempotent: true,
  }),
  enableScript: rpc('ambit.rpc.skill-store.v1.script.enable', {
    summary: 'Let an agent run a script of one of its skills, its own or a plugin’s: of this version, and of no later one',
    input: z.object({ agentId: AgentId, name: SkillName, digest: Hex64, path: ScriptPath }), output: z.object({ digest: Hex64, scripts: z.array(ScriptPath) }),
    errors: { SKILL_NOT_FOUND: skillUnknown, SCRIPT_UNKNOWN: scriptUnknown, SKILL_CHANGED: { status: 409, retry: 'never', message: 'The skill is another version by now; look at it again', data: z.object({ digest: Hex64 }) } }, idempotent: true,
  }),
  disableScript: rpc('ambit.rpc.skill-store.v1.script.disable', { summary: 'Take the permission to run a script away', input: z.object({ agentId: AgentId, name: SkillName, path: ScriptPath }), output: z.object({ scripts: z.array(ScriptPath) }), errors: { SKILL_NOT_FOUND: skillUnknown }, idempotent: true }),
  readScript: rpc('ambit.rpc.skill-store.v1.script.read', {
    summary: 'The files of the skill that an enabled script belongs to, where it is enabled now, of this version',
    input: z.object({ agentId: AgentId, name: SkillName, digest: Hex64, path: ScriptPath }), output: z.object({ files: z.array(FileEntry).max(512) }),
    errors: { SKILL_NOT_FOUND: skillUnknown, SCRIPT_NOT_ENABLED: refusals.SCRIPT_NOT_ENABLED }, idempotent: true,
  }),
  putContribution: rpc('ambit.rpc.skill-store.v1.contribution.put', { summary: 'plugin-registry hands over a plugin’s read-only skills, all or nothing', input: z.object({ owner: Owner, projectId: ProjectId, skills: z.array(z.object({ files: z.array(FileEntry).max(512) })).max(200) }), output: z.object({ names: z.array(SkillName) }), errors: { SKILL_INVALID: invalid, BLOB_MISSING: blobMissing, NAME_TAKEN: { status: 409, retry: 'never', message: 'Another plugin contributes a skill of this name', data: z.object({ name: z.string(), owner: Owner }) } }, idempotent: true, timeoutMs: 30_000 }),
  revokeOwner: rpc('ambit.rpc.skill-store.v1.owner.revoke', { summary: 'Withdraw every contribution of an owner, then answer', input: z.object({ owner: Owner, fence: z.int().min(1) }), output: z.object({ withdrawn: z.int().min(0) }), idempotent: true }),

  removeScope: rpc('ambit.rpc.skill-store.v1.scope.remove', { summary: 'session-service deleted an agent: everything that it had goes, and what was on its way to it does not arrive', input: z.object({ agentId: AgentId, createdAt: Instant.meta({ description: 'Of the agent that was deleted' }) }), output: z.object({ removed: z.int().min(0) }), idempotent: true, timeoutMs: 10_000 }),

  ...skillDrafts,
  ...skillImport,

  putSwitch: rpc('ambit.rpc.skill-store.v1.switch.put', { summary: 'Switch all skills on or off; off, there are none at run time, and all of them in the lists', input: SkillSwitch, output: SkillSwitch, idempotent: true }),
  listSwitches: rpc('ambit.rpc.skill-store.v1.switch.list', { summary: 'How that stands', input: z.object({}), output: z.object({ items: z.array(SkillSwitch) }), idempotent: true }),

  skillChanged: event('ambit.evt.skill-store.v1.skill.changed.{agentId}', { summary: 'An agent’s catalogue moved, once a mutation', payload: z.object({ agentId: AgentId, epoch: z.int(), reason: z.enum(['installed', 'updated', 'removed', 'enabled', 'disabled', 'discovered', 'contributed', 'withdrawn', 'script-enabled', 'script-disabled']), names: z.array(z.string()).max(1_000), at: Instant }) }),
  listAudit: auditReading('skill-store'),
  auditAppended: auditEvent('skill-store'),
};
