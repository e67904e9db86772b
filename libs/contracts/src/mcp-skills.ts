import { z } from 'zod';
import { rpc } from './kit/contract.js';
import { Hex64, Uuid } from './nouns.js';
import { refusing } from './refusals.js';
import { SkillName } from './skill-file.js';

const SkillUri = z.string().min(1).max(2_048);

/** A skill that a server offers, as it was found last. */
export const ServerSkill = z
  .object({
    uri: SkillUri,
    /** The last segment of its path, and the name in its own words. */
    name: SkillName,
    /** The whole path, for names that clash. */
    path: z.string().max(2_048),
    description: z.string().max(1_024),
    /** Of its SKILL.md where the server was searched; of the whole set of files where the server lists them. */
    digest: Hex64,
    found: z.enum(['listed', 'searched']),
    /** Its files with their digests, as the server lists them; null where it does not say, or says that they change. */
    files: z.array(z.object({ uri: SkillUri, digest: Hex64, bytes: z.int().min(0).nullable() })).max(1_000).nullable(),
    /** Of what the server says of it beforehand: its SKILL.md has to say the same. */
    frontmatterHash: Hex64,
    modelInvocable: z.boolean(),
    userInvocable: z.boolean(),
    argumentHint: z.string().max(500).nullable(),
  })
  .meta({ id: 'ServerSkill' });
export type ServerSkill = z.output<typeof ServerSkill>;

/** What may be switched while everything runs: skills of servers, and all of an agent's own, of plugins and of the platform. */
export const SwitchName = z.enum(['mcp-skills', 'skills']);
export const Switch = z.object({ name: SwitchName, enabled: z.boolean() }).meta({ id: 'Switch' });
export type Switch = z.output<typeof Switch>;
const own = Switch.extend({ name: SwitchName.extract(['mcp-skills']) });

const moved = { status: 409, retry: 'later', message: 'The list changed; begin again' } as const;

/** Skills of servers; part of the broker’s contracts. */
export const mcpSkills = {
  skillPage: rpc('ambit.rpc.mcp-broker.v1.skill.page', {
    summary: 'The skills of one server as they were found last, at most 256 KiB at a time; asks no server', input: z.object({ serverId: Uuid, hash: Hex64, offset: z.int().min(0).default(0) }),
    output: z.object({ skills: z.array(ServerSkill), next: z.int().nullable() }), errors: { OFFERS_MOVED: moved }, idempotent: true,
  }),
  readServerSkill: rpc('ambit.rpc.mcp-broker.v1.skill.read', {
    summary: 'A file of a server’s skill that is in the run’s snapshot, checked against its digest; without a path its SKILL.md',
    input: z.object({ runId: Uuid, sessionId: Uuid, name: z.string().min(1).max(200).meta({ description: 'As the snapshot has it' }), path: z.string().min(1).max(2_048).default('SKILL.md'), offset: z.int().min(0).default(0), length: z.int().min(1).max(256 * 1024).default(64 * 1024) }),
    output: z.object({ server: z.string(), uri: SkillUri, digest: Hex64, text: z.string(), bytes: z.int(), next: z.int().nullable(), verified: z.boolean().meta({ description: 'The server said beforehand what these bytes hash to' }), files: z.array(z.string()).max(1_000) }),
    errors: {
      SKILL_GONE: { status: 410, retry: 'never', message: 'The skill was taken away or changed since this run began; a new run sees it as it is' },
      SKILL_NOT_ACTIVE: { status: 409, retry: 'never', message: 'Read the skill’s SKILL.md first: its files are there for whoever follows it' },
      FILE_NOT_FOUND: { status: 404, retry: 'never', message: 'The skill has no such file' },
      DIGEST_MISMATCH: { status: 409, retry: 'never', message: 'The server sent other bytes than it said; nothing of them is shown' },
      FILE_TOO_LARGE: { status: 413, retry: 'never', message: 'The file is larger than may be read', data: z.object({ limitBytes: z.int() }) },
      NOT_TEXT: { status: 415, retry: 'never', message: 'The file is not text' },
      UPSTREAM_ERROR: { status: 502, retry: 'never', message: 'The server answered with an error', data: z.object({ code: z.int(), message: z.string().max(2_000), data: z.unknown().optional() }) },
      NOT_OFFERED: { status: 404, retry: 'never', message: 'No server of this run offers that' },
      ...refusing('TOOL_NOT_IN_SNAPSHOT', 'TURN_ENDED', 'AGENT_DISABLED', 'SERVER_NOT_ALLOWED', 'SERVER_UNAVAILABLE', 'CALL_TIMEOUT', 'RESULT_TOO_LARGE', 'TARGET_CHANGED', 'TOOL_GONE', 'AUTHORIZATION_REQUIRED'),
    },
    timeoutMs: 60_000,
  }),
  putSwitch: rpc('ambit.rpc.mcp-broker.v1.switch.put', { summary: 'Switch a feature on or off while everything runs', input: own, output: own, idempotent: true, timeoutMs: 20_000 }),
  listSwitches: rpc('ambit.rpc.mcp-broker.v1.switch.list', { summary: 'What may be switched, and how it stands', input: z.object({}), output: z.object({ items: z.array(own) }), idempotent: true }),
};
