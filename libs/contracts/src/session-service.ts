import { z } from 'zod';
import { auditEvent, auditReading } from './audit.js';
import { delegation } from './delegation.js';
import { storedText } from './kit/stored-text.js';
import { event, job, rpc, signal } from './kit/contract.js';
import { RunStatus } from './journal.js';
import {
  AgentId, FaultBodySchema, Hex64, Instant, JsonObject, Limits, MatchRule, matchRules, Owner, page, PageInput, PermissionMode, Policy, Principal, ProjectId, SceneId, SetName, Slug, Target, Uuid, Version,
} from './nouns.js';
import { refusals, refusing } from './refusals.js';
import { streams } from './streams.js';

// Long because one owner's nouns and calls stand in one file, and this one owns the most.

// ---- nouns -------------------------------------------------------------------------------------------------------

export const Project = z.object({ id: ProjectId, display: z.string().max(200), version: Version, createdAt: Instant, updatedAt: Instant }).meta({ id: 'Project' });
export type Project = z.output<typeof Project>;

export const AgentKind = z.enum(['sdk', 'acp']);
export const AgentSpec = z
  .object({
    id: AgentId,
    projectId: ProjectId.default('default'),
    kind: AgentKind.default('sdk'),
    enabled: z.boolean().default(true),
    model: z.string().max(200).default(''),
    instructions: z.string().max(256 * 1024).default(''),
    policy: Policy.prefault({}),
    match: matchRules(MatchRule).default([]),
    set: SetName.default(null),
  })
  .meta({ id: 'AgentSpec' });
export type AgentSpec = z.output<typeof AgentSpec>;
export const Agent = AgentSpec.extend({ version: Version, policyVersion: Version, createdAt: Instant, updatedAt: Instant }).meta({ id: 'Agent' });
export type Agent = z.output<typeof Agent>;

export const Session = z
  .object({
    id: Uuid,
    projectId: ProjectId,
    agentId: AgentId,
    kind: z.enum(['regular', 'subagent']),
    principal: Principal,
    /** Chosen skill names; `null` = every skill the agent's policy allows. */
    skills: z.array(z.string().max(64)).max(200).nullable(),
    mode: PermissionMode,
    workspaceId: z.string().max(200).nullable(),
    parentSessionId: Uuid.nullable(),
    /** Of a subagent's session: the slot of its parent's policy that it fills. */
    slot: Slug.nullable().default(null),
    adapter: z.string().max(100),
    endpoint: z.string().max(200),
    sceneId: z.string().max(200),
    thread: z.string().max(200).nullable(),
    version: Version,
    createdAt: Instant,
    updatedAt: Instant,
  })
  .meta({ id: 'Session' });
export type Session = z.output<typeof Session>;

export const Run = z
  .object({
    id: Uuid,
    originRunId: Uuid,
    sessionId: Uuid,
    agentId: AgentId,
    projectId: ProjectId,
    kind: z.enum(['worker', 'edge']),
    status: RunStatus,
    /** The agent's version when this run was bound to it: its rules, policy and model then. */
    agentVersion: Version.nullable().default(null),
    /** Number of attempts opened so far. */
    attempt: z.int().min(0),
    fingerprint: Hex64,
    /** Every fingerprint the run was given, the job's first; a skill that it viewed gives it another, valid from its next step. */
    fingerprints: z.array(Hex64).max(64).default([]),
    /** Sources of the catalogue that could not be read when it was composed: what they offer is missing. */
    degraded: z.array(z.string().max(60)).max(20).default([]),
    pool: z.string().max(200),
    principal: Principal,
    resumes: Uuid.nullable(),
    fault: FaultBodySchema.nullable(),
    createdAt: Instant,
    startedAt: Instant.nullable(),
    endedAt: Instant.nullable(),
  })
  .meta({ id: 'Run' });
export type Run = z.output<typeof Run>;

/** What an agent may ask to have changed of its own settings. Everything else of an agent is its administrators' alone. */
export const AgentAdjustment = z
  .strictObject({
    instructions: z.string().max(64 * 1024).optional(),
    model: z.string().max(200).optional(),
    mode: PermissionMode.optional(),
    whileBusy: Policy.shape.whileBusy.unwrap().optional(),
    disableTools: z.array(z.string().min(1).max(128)).max(100).optional(),
    limits: z.strictObject({ runsAtOnce: z.int().min(1), callsPerRun: z.int().min(1), callsPerMinute: z.int().min(1) }).partial().optional(),
  })
  .meta({ id: 'AgentAdjustment' });
export type AgentAdjustment = z.output<typeof AgentAdjustment>;

/** Why a run failed, as its own `fault` says; one that was cancelled says CANCELLED there. */
export const runFaults = {
  AGENT_DISABLED: { message: refusals.AGENT_DISABLED.message },
  DELIVERIES_EXHAUSTED: { message: 'The run was handed to a worker three times and none of them finished it; look at the workers’ logs' },
  WORKER_FAILED: { message: 'The worker ended the run with a failure; its reason, where it gave one, stands here instead' },
  PARKED: { message: 'JetStream was lost while the run was going: nobody knows which of its last calls have happened. Look what they did before you go on' },
  OUTPUT_TRUNCATED: { message: 'The model’s output was cut off twice; give it more room for what it says, or ask for less at once' },
  NO_PROGRESS: { message: 'The model made the same calls with the same results four times in a row' },
  LIMIT_REACHED: { message: 'The run reached one of its limits; raise it in the agent’s policy, or ask for less at once' },
} as const satisfies Record<string, { readonly message: string }>;

/** A call as a model asked for it; `arguments` is the JSON text the model wrote. */
export const IntendedCall = z.object({ callId: z.string().min(1).max(200), name: z.string().min(1).max(128), arguments: z.string().max(512 * 1024) }).meta({ id: 'IntendedCall' });
export type IntendedCall = z.output<typeof IntendedCall>;

export const CallStatus = z.enum(['completed', 'failed', 'refused', 'cancelled', 'waiting', 'running', 'indeterminate']);
export type CallStatus = z.infer<typeof CallStatus>;

export const ContentBlock = z.looseObject({ type: z.string().max(100) }).meta({ id: 'ContentBlock', description: 'A block as MCP and model providers write it: {type: "text", text} and others' });
export type ContentBlock = z.output<typeof ContentBlock>;

export const CallResult = z
  .object({
    callId: z.string().max(200),
    status: CallStatus,
    content: z.array(ContentBlock).optional(),
    structuredContent: z.unknown().optional(),
    artifact: z.object({ digest: Hex64, bytes: z.int().min(0) }).optional(),
    fault: FaultBodySchema.optional(),
  })
  .meta({ id: 'CallResult' });
export type CallResult = z.output<typeof CallResult>;

export const TapeMessage = z
  .union([
    z.object({ role: z.enum(['user', 'assistant', 'system']), content: z.array(ContentBlock), raw: z.unknown().optional() }),
    z.object({ role: z.literal('tool'), results: z.array(CallResult) }),
  ])
  .meta({ id: 'TapeMessage' });
export type TapeMessage = z.output<typeof TapeMessage>;

export const Usage = z.object({ provider: z.string().max(100), model: z.string().max(200), inputTokens: z.int().min(0), outputTokens: z.int().min(0) }).meta({ id: 'Usage' });

export const TapeEntry = z
  .object({
    id: z.int().min(1),
    sessionId: Uuid,
    runId: Uuid.nullable(),
    kind: z.enum(['message', 'tool_call', 'tool_result', 'anchor', 'event']),
    step: z.int().min(0).nullable(),
    role: z.string().max(20).nullable(),
    content: z.unknown(),
    at: Instant,
  })
  .meta({ id: 'TapeEntry' });
export type TapeEntry = z.output<typeof TapeEntry>;

/** Whose tapes a search reads: the session's own, or those of the sessions that its subagents work in. */
export const TapeScope = z.enum(['current', 'linked_subagents', 'current_and_linked']);

export const InteractionKind = z.enum(['permission', 'question', 'elicitation', 'authorize', 'skill-draft', 'delegation', 'sampling']);
export const InteractionStatus = z.enum(['pending', 'allowed', 'denied', 'answered', 'expired', 'cancelled', 'settled']);
export const Question = z
  .strictObject({
    header: z.string().max(30).default(''),
    question: z.string().min(1).max(500),
    options: z.array(z.strictObject({ label: z.string().min(1).max(30), description: z.string().max(200).default('') })).min(1).max(10),
    multiple: z.boolean().default(false),
    custom: z.boolean().default(true),
  })
  .meta({ id: 'Question' });
export type Question = z.output<typeof Question>;
export const Answer = z.object({ selected: z.array(z.string().max(30)).max(10).default([]), text: z.string().max(4_000).default(''), content: JsonObject.optional().meta({ description: 'Of an elicitation: the fields that were asked for. Of sampling: the message of the model' }) }).meta({ id: 'Answer' });

/** What the server calls it, among those that it asks for at once. */
const AskedKey = z.string().max(200).optional();

/** What a server asks for while it works on a call; the person is shown which server it is. */
export const AskedBack = z
  .discriminatedUnion('kind', [
    z.object({ kind: z.literal('form'), server: z.string().max(63), key: AskedKey, message: z.string().max(16 * 1024), requestedSchema: JsonObject }),
    z.object({ kind: z.literal('url'), server: z.string().max(63), key: AskedKey, message: z.string().max(16 * 1024), url: z.url().max(8_192) }),
    z.object({ kind: z.literal('sampling'), server: z.string().max(63), key: AskedKey, params: JsonObject }),
  ])
  .meta({ id: 'AskedBack' });
export type AskedBack = z.output<typeof AskedBack>;

export const Interaction = z
  .object({
    id: Uuid,
    kind: InteractionKind,
    status: InteractionStatus,
    runId: Uuid,
    originRunId: Uuid,
    sessionId: Uuid,
    agentId: AgentId,
    projectId: ProjectId,
    step: z.int().min(0),
    callId: z.string().max(200),
    operationId: Hex64,
    /** Place within its batch, from 0, in call order. */
    order: z.int().min(0),
    tool: z.string().max(128),
    /** Redacted and bounded to 16 KiB, for the person who decides. */
    argumentsPreview: z.string().max(20_000),
    argumentsHash: Hex64,
    question: Question.nullable(),
    /** Of an elicitation or sampling: what the server asks for, within a call that goes on meanwhile. */
    askedBack: AskedBack.nullable().optional(),
    /** Of a sign-in: the server that is to be signed in to. */
    serverId: Uuid.optional(),
    rule: z.string().max(500).nullable(),
    approvers: z.array(z.string().max(200)).max(50),
    notRequester: z.boolean(),
    /** Whoever asked waits for the answer while the run goes on: a decision executes nothing and resumes nothing. */
    isLive: z.boolean().default(false),
    principal: Principal,
    /** The earlier pending interaction of the session that has to be answered first. */
    blockedBy: Uuid.nullable(),
    decidedBy: Principal.nullable(),
    decidedAt: Instant.nullable(),
    answer: Answer.nullable(),
    createdAt: Instant,
    expiresAt: Instant,
  })
  .meta({ id: 'Interaction' });
export type Interaction = z.output<typeof Interaction>;

/** Everything the gateway needs to decide a run's calls, true for as long as `stateSequence` is the run's newest. */
export const Authority = z
  .object({
    runId: Uuid,
    originRunId: Uuid,
    sessionId: Uuid,
    agentId: AgentId,
    projectId: ProjectId,
    kind: z.enum(['worker', 'edge']),
    status: RunStatus,
    stateSequence: z.int().min(1),
    stateVersion: z.int().min(1),
    fingerprint: Hex64,
    /** sha256 of the run token of each attempt, newest last, at most 16. */
    tokens: z.array(z.object({ attempt: z.int().min(1), hash: Hex64 })).max(16),
    workerId: Uuid.nullable(),
    pool: z.string().max(200),
    principal: Principal,
    mode: PermissionMode,
    enabled: z.boolean(),
    /** Null: what is stored cannot be read, which allows nothing. */
    policy: Policy.nullable(),
    policyVersion: Version,
    ancestors: z.array(z.object({ agentId: AgentId, enabled: z.boolean(), mode: PermissionMode, policy: Policy.nullable() })).max(5),
    /** Owners whose fence moved since the mapping was published; their tools are TOOL_GONE. */
    revokedOwners: z.array(Owner).max(1_000),
    /** Agents that the policy names as subagents, and that exist and are switched on now. */
    knownAgents: z.array(AgentId).max(1_000).default([]),
    skills: z.array(z.object({ name: z.string().max(64), agentId: AgentId, digest: Hex64 })).max(1_000),
    /** Names of the skills that this run opened; told only of a run that has scripts to run, or skills of servers. */
    openedSkills: z.array(z.string().max(64)).max(200).default([]),
    /** The newest stored step: `digest` = sha256 of canonical JSON {arguments, name} of each of its calls; `callsBefore` = calls stored in earlier steps of the origin run, which makes callsPerRun exact on every replica. */
    step: z.object({ step: z.int().min(0), callsBefore: z.int().min(0), calls: z.array(z.object({ callId: z.string().max(200), digest: Hex64 })).max(1_000), /** The model's output was cut off: none of them is executed. */ cut: z.boolean().optional() }).nullable(),
    /** Milliseconds until the run's 30 minutes are up. */
    remainingMs: z.int().min(0),
  })
  .meta({ id: 'Authority' });
export type Authority = z.output<typeof Authority>;

export const MessageIn = z
  .object({
    principal: Principal,
    roles: z.array(storedText(z.string().max(100))).max(50).default([]),
    adapter: storedText(z.string().min(1).max(100)).default('http'),
    endpoint: storedText(z.string().max(200)).default(''),
    scene: z.enum(['private', 'group', 'channel']).default('private'),
    sceneId: storedText(SceneId).default(''),
    thread: storedText(z.string().max(200)).optional(),
    content: z.string().min(1).max(256 * 1024),
    media: z.array(z.object({ kind: z.enum(['image', 'audio', 'video']), artifact: Hex64.optional(), url: z.url().max(2_048).optional() })).max(20).default([]),
    replyTo: storedText(z.string().max(500)).optional(),
    /** Names the agent instead of letting match rules find one. */
    agentId: AgentId.optional(),
    /** Continues this session instead of the one found by (agent, adapter, endpoint, sceneId, thread). */
    sessionId: Uuid.optional(),
    skills: z.array(z.string().max(64)).max(200).nullable().optional(),
    mode: PermissionMode.optional(),
    workspaceId: storedText(z.string().max(200)).optional(),
    /** Persists this draft: the message is the first of its session, and runs with the draft's snapshot. */
    draftId: Uuid.optional(),
    idempotencyKey: storedText(z.string().min(1).max(200)),
  })
  .meta({ id: 'MessageIn' });
export type MessageIn = z.output<typeof MessageIn>;

export const Reason = z
  .object({
    kind: z.enum(['tool', 'skill', 'server', 'plugin', 'subagent', 'prompt', 'alias', 'source']),
    name: z.string().max(200),
    owner: z.string().max(200),
    slot: z.string().max(400),
    included: z.boolean(),
    code: z.string().max(60),
    detail: z.string().max(1_000),
    filters: z.array(z.object({ name: z.string().max(60), verdict: z.enum(['pass', 'fail', 'absent']), detail: z.string().max(500).optional() })).max(20),
  })
  .meta({ id: 'Reason', description: 'Why a candidate is in a snapshot or not' });
export type Reason = z.output<typeof Reason>;

export const Explanation = z
  .object({
    kind: z.enum(['tool', 'skill']),
    name: z.string().max(200),
    visible: z.boolean(),
    /** In one sentence: the first reason it is absent, or how it got in and what happens when it is called. */
    summary: z.string().max(2_000),
    sessionId: Uuid.nullable(),
    agentId: AgentId,
    fingerprint: Hex64.nullable(),
    policyVersion: Version,
    chain: z.array(z.object({ step: z.string().max(60), verdict: z.enum(['pass', 'fail', 'info']), code: z.string().max(60), detail: z.string().max(1_000) })).max(50),
    reasons: z.array(Reason).max(50),
  })
  .meta({ id: 'Explanation' });
export type Explanation = z.output<typeof Explanation>;

// ---- the worker contract -----------------------------------------------------------------------------------------

export const RunRef = z.object({ runId: Uuid, originRunId: Uuid, sessionId: Uuid, fingerprint: Hex64 });
const RunRefWithToken = RunRef.extend({ token: z.string().min(20).max(200) });
/** `messages` are the newest that fit in 400 KiB; `more` says that older ones stand on the tape, before `before`. */
const TapeView = z.object({ step: z.int().min(0), messages: z.array(TapeMessage), openCalls: z.array(IntendedCall), more: z.boolean(), before: z.int().nullable() });

export const RunJob = RunRef.extend({
  schemaVersion: z.literal(1),
  model: z.string().max(200),
  instructions: z.string().max(256 * 1024),
  limits: Limits,
  workspaceId: z.string().max(200).nullable(),
  /** Sources of the catalogue that could not be read: the snapshot is without what they offer. */
  degraded: z.array(z.string().max(60)).max(20).default([]),
}).meta({ id: 'RunJob' });
export type RunJob = z.output<typeof RunJob>;

const own = refusing('TOOL_NOT_IN_SNAPSHOT', 'TURN_ENDED', 'STALE_INSTANCE');
const unknown = <const N extends string>(noun: N) => ({ status: 404, retry: 'never', message: `There is no such ${noun}` }) as const;
const conflict = { status: 409, retry: 'never', message: 'It changed since you read it; read it again', data: z.object({ version: z.int() }) } as const;
const readOnly = { status: 409, retry: 'never', message: 'This is the session of a subagent: it takes decisions, and nothing else from outside' } as const;
const skillUnknown = { status: 400, retry: 'never', message: 'The agent has no such skills', data: z.object({ names: z.array(z.string()) }) } as const;
const busy = { status: 409, retry: 'later', message: 'The session is working, waits for a decision or has messages that wait; end that first, or ask for it to be cancelled' } as const;
/** Deferred tools that one session may load. */
export const LOADED_TOOLS_MAX = 12;
const noInteraction = { status: 404, retry: 'never', message: 'No such decision is pending' } as const;

/** A skill as people are offered it. */
const PersonsCommand = z.object({ name: z.string().min(1).max(200), description: z.string(), origin: z.enum(['owned', 'plugin', 'builtin', 'mcp']), owner: Owner }).meta({ id: 'PersonsCommand' });

export const sessionService = {
  putProject: rpc('ambit.rpc.session-service.v1.project.put', { summary: 'Create or change a project', input: z.object({ id: ProjectId, display: z.string().max(200).default('') }), output: Project, idempotent: true }),
  listProjects: rpc('ambit.rpc.session-service.v1.project.list', { summary: 'Projects, a page at a time', input: z.object({ ...PageInput }), output: page(Project), idempotent: true }),

  putAgent: rpc('ambit.rpc.session-service.v1.agent.put', {
    summary: 'Create or change an agent; a new policy version moves the authority of its live runs',
    input: AgentSpec.extend({ ifVersion: z.int().min(0).optional().meta({ description: '0 = only if it does not exist' }) }),
    output: Agent,
    errors: { AGENT_AMBIGUOUS: { status: 409, retry: 'never', message: 'Another agent matches the same messages; a tie is an error', data: z.object({ agents: z.array(AgentId) }) }, VERSION_CONFLICT: conflict, ALIAS_TAKEN: { status: 409, retry: 'never', message: 'An alias must not be a reserved or qualified tool name', data: z.object({ alias: z.string() }) }, AGENT_LEAVING: { status: 409, retry: 'later', message: 'An agent of this id was deleted and its skills are still being removed; try again in a moment' } },
  }),
  getAgent: rpc('ambit.rpc.session-service.v1.agent.get', { summary: 'One agent', input: z.object({ id: AgentId }), output: Agent, errors: { AGENT_UNKNOWN: unknown('agent') }, idempotent: true }),
  listAgents: rpc('ambit.rpc.session-service.v1.agent.list', { summary: 'Agents, a page at a time', input: z.object({ projectId: ProjectId.optional(), set: Slug.optional(), ...PageInput }), output: page(Agent), idempotent: true }),
  deleteAgent: rpc('ambit.rpc.session-service.v1.agent.delete', {
    summary: 'Delete an agent that no session uses', input: z.object({ id: AgentId }), output: z.object({ deleted: z.boolean() }),
    errors: { AGENT_UNKNOWN: unknown('agent'), AGENT_IN_USE: { status: 409, retry: 'never', message: 'Sessions still use this agent; delete them or switch it off' } },
  }),
  adjustAgent: rpc('ambit.rpc.session-service.v1.agent.adjust', {
    summary: 'A change that an agent asked for of its own settings and a person approved; it never widens what the agent may do',
    input: z.object({ operationId: Hex64.meta({ description: 'The call that a person approved' }), change: AgentAdjustment }), output: Agent,
    errors: { NO_INTERACTION: noInteraction, ADJUSTMENT_WIDENS: { status: 403, retry: 'never', message: 'Only an administrator may allow an agent more than it has', data: z.object({ reason: z.string() }) } },
  }),
  matchAgent: rpc('ambit.rpc.session-service.v1.agent.match', {
    summary: 'Which agent a message would reach', input: MessageIn.pick({ adapter: true, endpoint: true, scene: true, sceneId: true, content: true, media: true }),
    output: z.object({ agentId: AgentId, version: Version, rule: z.int().min(0).nullable().default(null).meta({ description: 'Which of its rules matched, from 0; null = what no rule matches is the agent’s named "default"' }) }),
    errors: { NO_AGENT: { status: 404, retry: 'never', message: 'No agent that is switched on matches this message, and none is named "default"' }, AGENT_AMBIGUOUS: { status: 409, retry: 'never', message: 'More than one agent matches this message', data: z.object({ agents: z.array(AgentId) }) } },
    idempotent: true,
  }),

  receiveMessage: rpc('ambit.rpc.session-service.v1.message.receive', {
    summary: 'Take an inbound message: binding, session, ingress, run',
    input: MessageIn,
    output: z.object({ sessionId: Uuid, runId: Uuid.nullable(), agentId: AgentId, queued: z.boolean(), position: z.int().min(0) }),
    errors: {
      NO_AGENT: { status: 404, retry: 'never', message: 'No agent that is switched on matches this message, and none is named "default"' },
      AGENT_UNKNOWN: unknown('agent'),
      AGENT_AMBIGUOUS: { status: 409, retry: 'never', message: 'More than one agent matches this message', data: z.object({ agents: z.array(AgentId) }) },
      SESSION_UNKNOWN: unknown('session'),
      SESSION_BUSY: { status: 409, retry: 'later', message: 'The session is working or waits for a decision, and the agent’s policy refuses messages meanwhile' },
      QUEUE_FULL: { status: 429, retry: 'later', message: 'Too many messages wait in this session', data: z.object({ limit: z.int() }) },
      SKILL_UNKNOWN: skillUnknown,
      SESSION_READ_ONLY: readOnly,
      DRAFT_UNKNOWN: { status: 404, retry: 'never', message: 'There is no such draft of this client; it may have been used, or its ten minutes are over' },
      ...refusing('AGENT_DISABLED'),
    },
    idempotent: true,
    timeoutMs: 15_000,
  }),
  createSession: rpc('ambit.rpc.session-service.v1.session.create', {
    summary: 'Open a session without a message',
    input: MessageIn.pick({ principal: true, adapter: true, endpoint: true, sceneId: true, thread: true, skills: true, mode: true, workspaceId: true }).extend({ agentId: AgentId }),
    output: Session,
    errors: { AGENT_UNKNOWN: unknown('agent'), SKILL_UNKNOWN: skillUnknown },
  }),
  getSession: rpc('ambit.rpc.session-service.v1.session.get', { summary: 'One session', input: z.object({ id: Uuid }), output: Session, errors: { SESSION_UNKNOWN: unknown('session') }, idempotent: true }),
  listSessions: rpc('ambit.rpc.session-service.v1.session.list', { summary: 'Sessions, newest first', input: z.object({ parentSessionId: Uuid.optional(), agentId: AgentId.optional(), projectId: ProjectId.optional(), principalId: z.string().max(200).optional(), ...PageInput }), output: page(Session), idempotent: true }),
  deleteSession: rpc('ambit.rpc.session-service.v1.session.delete', { summary: 'End a session’s runs and remove it whole', input: z.object({ id: Uuid }), output: z.object({ deleted: z.boolean() }), errors: { SESSION_UNKNOWN: unknown('session') }, timeoutMs: 15_000 }),

  erasePrincipal: rpc('ambit.rpc.session-service.v1.principal.erase', {
    summary: 'End a principal’s runs and remove what it said, what was answered and its names; what remains are digests and ids',
    input: z.object({ principal: Principal.shape.id }), output: z.object({ runs: z.int().min(0), entries: z.int().min(0), sessionIds: z.array(Uuid).max(10_000) }), idempotent: true, timeoutMs: 120_000,
  }),
  updateSession: rpc('ambit.rpc.session-service.v1.session.update', {
    summary: 'Choose skills, the permission mode or the workspace; holds from the next run on, a narrower mode at once',
    input: z.object({ id: Uuid, skills: z.array(z.string().max(64)).max(200).nullable().optional(), mode: PermissionMode.optional(), workspaceId: z.string().min(1).max(200).nullable().optional(), ifVersion: z.int().min(1).optional() }),
    output: Session,
    errors: { SESSION_UNKNOWN: unknown('session'), SKILL_UNKNOWN: skillUnknown, VERSION_CONFLICT: conflict, SESSION_READ_ONLY: readOnly },
  }),
  transferSession: rpc('ambit.rpc.session-service.v1.session.transfer', {
    summary: 'Give a session to another agent, whole or not at all; its tape and its choice of skills stay, what was allowed does not',
    input: z.object({ id: Uuid, agentId: AgentId, whileBusy: z.enum(['refuse', 'cancel']).default('refuse').meta({ description: 'cancel: an open run ends and waiting messages are dropped with the move' }) }),
    output: Session,
    errors: { SESSION_UNKNOWN: unknown('session'), AGENT_UNKNOWN: unknown('agent'), SESSION_BUSY: busy, SESSION_READ_ONLY: readOnly, TRANSFER_UNSUPPORTED: { status: 409, retry: 'never', message: 'A session cannot move to or from an ACP agent: its history stays behind' }, ...refusing('AGENT_DISABLED') },
    timeoutMs: 15_000,
  }),
  forkSession: rpc('ambit.rpc.session-service.v1.session.fork', {
    summary: 'A new session with the same agent, choices and tape; without mapping, approvals and pending decisions',
    input: z.object({ id: Uuid }), output: Session, errors: { SESSION_UNKNOWN: unknown('session'), AGENT_UNKNOWN: unknown('agent'), SESSION_READ_ONLY: readOnly }, timeoutMs: 15_000,
  }),
  clearSession: rpc('ambit.rpc.session-service.v1.session.clear', {
    summary: 'End what the session does and take back what it was given; its tape stays', input: z.object({ id: Uuid }), output: Session, errors: { SESSION_UNKNOWN: unknown('session') }, timeoutMs: 15_000,
  }),
  createDraft: rpc('ambit.rpc.session-service.v1.draft.create', {
    summary: 'Compose what a session that does not exist yet would see; its first message names the draft within ten minutes',
    input: MessageIn.pick({ principal: true, roles: true, adapter: true, endpoint: true, sceneId: true, thread: true, skills: true, mode: true, workspaceId: true }).extend({ agentId: AgentId }),
    output: z.object({ draftId: Uuid, agentId: AgentId, fingerprint: Hex64, expiresAt: Instant }),
    errors: { AGENT_UNKNOWN: unknown('agent'), SKILL_UNKNOWN: skillUnknown, ...refusing('AGENT_DISABLED') },
    timeoutMs: 15_000,
  }),

  getRun: rpc('ambit.rpc.session-service.v1.run.get', { summary: 'One run', input: z.object({ id: Uuid }), output: Run, errors: { RUN_UNKNOWN: unknown('run') }, idempotent: true }),
  listRuns: rpc('ambit.rpc.session-service.v1.run.list', { summary: 'Runs, newest first', input: z.object({ sessionId: Uuid.optional(), agentId: AgentId.optional(), projectId: ProjectId.optional(), status: RunStatus.optional(), ...PageInput }), output: page(Run), idempotent: true }),
  cancelRun: rpc('ambit.rpc.session-service.v1.run.cancel', {
    summary: 'Cancel a run: its authority moves first, then its open calls are told', input: z.object({ id: Uuid, reason: z.string().max(200).default('cancelled by a person') }),
    output: z.object({ state: z.enum(['stopped', 'stopping', 'ended', 'unknown']) }), idempotent: true, timeoutMs: 10_000,
  }),
  getAuthority: rpc('ambit.rpc.session-service.v1.run.authority', { summary: 'What a run may do now, with the sequence its claims are fenced on', input: z.object({ runId: Uuid }), output: Authority, errors: refusing('TOOL_NOT_IN_SNAPSHOT'), idempotent: true }),

  listTape: rpc('ambit.rpc.session-service.v1.tape.list', { summary: 'A session’s tape in order, for people', input: z.object({ sessionId: Uuid, after: z.int().min(0).default(0), limit: z.int().min(1).max(200).default(100), newest: z.boolean().default(false).meta({ description: 'The last `limit` entries instead' }) }), output: z.object({ items: z.array(TapeEntry), next: z.int().nullable() }), errors: { SESSION_UNKNOWN: unknown('session') }, idempotent: true }),
  searchTape: rpc('ambit.rpc.session-service.v1.tape.search', {
    summary: 'Full-text search over a session’s tape',
    input: z.object({ sessionId: Uuid, scope: TapeScope.default('current'), query: z.string().trim().min(1).max(500), limit: z.int().min(1).max(50).default(20), kinds: z.array(TapeEntry.shape.kind).max(5).optional(), start: Instant.optional(), end: Instant.optional() }),
    output: z.object({ entries: z.array(z.object({ sessionId: Uuid, id: z.int(), kind: TapeEntry.shape.kind, excerpt: z.string().max(2_000), at: Instant })) }), idempotent: true,
  }),
  tapeContext: rpc('ambit.rpc.session-service.v1.tape.context', {
    summary: 'Tape entries with their neighbours',
    input: z.object({ sessionId: Uuid, sourceSessionId: Uuid.optional().meta({ description: 'A subagent’s session below this one; otherwise its own' }), entryIds: z.array(z.int().min(1)).min(1).max(20), before: z.int().min(0).max(20).default(2), after: z.int().min(0).max(20).default(2), limit: z.int().min(1).max(100).default(50), entryBytes: z.int().min(1).max(8_192).default(2_048), totalBytes: z.int().min(1).max(65_536).default(16_384) }),
    output: z.object({ entries: z.array(z.object({ id: z.int(), kind: TapeEntry.shape.kind, text: z.string(), truncated: z.boolean(), at: Instant })) }), errors: { SESSION_UNKNOWN: unknown('session') }, idempotent: true,
  }),

  requestInteractions: rpc('ambit.rpc.session-service.v1.interaction.request', {
    summary: 'The gateway asks for decisions of one batch, in call order; idempotent by operation id',
    input: z.object({
      runId: Uuid,
      step: z.int().min(0),
      requests: z.array(Interaction.pick({ kind: true, callId: true, operationId: true, tool: true, argumentsPreview: true, argumentsHash: true, question: true, askedBack: true, rule: true, approvers: true, notRequester: true }).extend({ order: z.int().min(0), expiresMs: z.int().min(1_000), target: Target.nullable(), isLive: z.boolean().default(false).meta({ description: 'The asker waits for the answer, within the run; `operationId` names this one question' }), arguments: IntendedCall.shape.arguments.optional().meta({ description: 'Of a call that no stored step holds: it joins the tape with the request' }) })).min(1).max(64),
    }),
    output: z.object({ interactions: z.array(z.object({ operationId: Hex64, interactionId: Uuid, status: InteractionStatus, answer: Answer.nullable() })) }),
    errors: refusing('APPROVAL_CAPACITY', 'TURN_ENDED'), idempotent: true,
  }),
  withdrawInteraction: rpc('ambit.rpc.session-service.v1.interaction.withdraw', { summary: 'Whoever asked a live question waits no more; one that was answered stays so', input: z.object({ operationId: Hex64 }), output: z.object({}), idempotent: true }),
  getInteraction: rpc('ambit.rpc.session-service.v1.interaction.get', { summary: 'One interaction, and where a person decides it', input: z.object({ id: Uuid }), output: Interaction.extend({ url: z.string().max(2_048).nullable().default(null), result: CallResult.nullable().default(null).meta({ description: 'How the call that asked ended, once it has' }) }), errors: { NO_INTERACTION: noInteraction }, idempotent: true }),
  listInteractions: rpc('ambit.rpc.session-service.v1.interaction.list', { summary: 'Interactions, oldest first', input: z.object({ projectId: ProjectId.optional(), sessionId: Uuid.optional(), runId: Uuid.optional(), status: InteractionStatus.optional(), ...PageInput }), output: page(Interaction), idempotent: true }),
  decideInteraction: rpc('ambit.rpc.session-service.v1.interaction.decide', {
    summary: 'A person’s decision; only the first pending of a session may be answered',
    input: z.object({ id: Uuid, sessionId: Uuid.optional().meta({ description: 'The session that the decider answers in; an interaction of another is not found' }), decision: z.enum(['allow', 'deny', 'answer']), answer: Answer.optional(), reason: z.string().max(1_000).optional(), by: Principal, groups: z.array(z.string().max(200)).max(100).default([]) }),
    output: Interaction,
    errors: {
      NO_INTERACTION: noInteraction,
      INTERACTION_ORDER: { status: 409, retry: 'later', message: 'An earlier decision of this session has to be taken first', data: z.object({ first: Uuid }) },
      INTERACTION_KIND: { status: 400, retry: 'never', message: 'A question takes an answer, a form or sampling an answer or deny, everything else allow or deny' },
      ANSWER_EMPTY: { status: 400, retry: 'never', message: 'Choose an option or write a text' },
      APPROVER_NOT_ENTITLED: { status: 403, retry: 'never', message: 'The rule names other approvers than this one' },
      ...refusing('APPROVAL_EXPIRED'),
    },
  }),
  settleInteraction: rpc('ambit.rpc.session-service.v1.interaction.settle', {
    summary: 'The gateway reports the result of an approved call; idempotent',
    input: z.object({ interactionId: Uuid, operationId: Hex64, result: CallResult }),
    output: z.object({ resumeRunId: Uuid.nullable() }), errors: { NO_INTERACTION: noInteraction }, idempotent: true,
  }),
  recordResults: rpc('ambit.rpc.session-service.v1.call.record', {
    summary: 'The gateway puts results that have no journal outcome (refusals) on the tape; idempotent by (origin run, step, call id)',
    input: z.object({ runId: Uuid, originRunId: Uuid, sessionId: Uuid, step: z.int().min(0), results: z.array(CallResult).min(1).max(256) }), output: z.object({ recorded: z.int().min(0) }), idempotent: true,
  }),

  readSnapshot: rpc('ambit.rpc.session-service.v1.snapshot.read', {
    summary: 'The canonical JSON of a snapshot, at most 256 KiB of characters at a time', input: z.object({ fingerprint: Hex64, offset: z.int().min(0).default(0) }),
    output: z.object({ text: z.string(), next: z.int().nullable(), agentId: AgentId }), errors: { SNAPSHOT_UNKNOWN: unknown('snapshot') }, idempotent: true,
  }),
  listSnapshots: rpc('ambit.rpc.session-service.v1.snapshot.list', { summary: 'Which snapshots a session or agent was given, newest first', input: z.object({ sessionId: Uuid.optional(), agentId: AgentId.optional(), ...PageInput }), output: page(z.object({ fingerprint: Hex64, agentId: AgentId, sessionId: Uuid.nullable(), tools: z.int(), skills: z.int(), at: Instant })), idempotent: true }),
  explain: rpc('ambit.rpc.session-service.v1.capability.explain', {
    summary: 'Why a session or agent can or cannot see a tool or skill',
    input: z.object({ sessionId: Uuid.optional(), agentId: AgentId.optional(), kind: z.enum(['tool', 'skill']), name: z.string().min(1).max(200), principal: Principal.optional() }),
    output: Explanation, errors: { AGENT_UNKNOWN: unknown('agent'), SESSION_UNKNOWN: unknown('session') }, idempotent: true, timeoutMs: 15_000,
  }),
  listCommands: rpc('ambit.rpc.session-service.v1.command.list', {
    summary: 'The skills that a person may call for by name in a session, as it stands now: all but those that say `user-invocable: false`, whether or not a model may use them',
    input: z.object({ sessionId: Uuid }), output: z.object({ items: z.array(PersonsCommand).max(2_000) }), errors: { SESSION_UNKNOWN: unknown('session') }, idempotent: true, timeoutMs: 15_000,
  }),
  loadTool: rpc('ambit.rpc.session-service.v1.tool.load', {
    summary: 'Show a session one of the deferred tools of its run whole, from its next refresh or run on; a session loads twelve at most, and none takes the place of another',
    input: z.object({ runId: Uuid, name: z.string().min(1).max(128) }), output: z.object({ loaded: z.array(z.string().max(128)).max(LOADED_TOOLS_MAX) }),
    errors: { ...refusing('TOOL_NOT_IN_SNAPSHOT', 'TURN_ENDED'), LOADED_TOOLS_LIMIT: { status: 409, retry: 'never', message: 'The session has loaded as many tools as it may; go on with those', data: z.object({ limit: z.int() }) } }, idempotent: true,
  }),
  revokeOwner: rpc('ambit.rpc.session-service.v1.owner.revoke', {
    summary: 'Move the authority of every live run whose mapping names this owner', input: z.object({ owner: Owner, service: z.string().max(63), fence: z.int().min(1) }), output: z.object({ runs: z.int().min(0) }), idempotent: true, timeoutMs: 15_000,
  }),
  ensurePool: rpc('ambit.rpc.session-service.v1.pool.ensure', { summary: 'Make the durable consumer of (agent, pool)', input: z.object({ agentId: AgentId, pool: z.string().max(200) }), output: z.object({ consumer: z.string() }), errors: { AGENT_UNKNOWN: unknown('agent') }, idempotent: true }),
  removePool: rpc('ambit.rpc.session-service.v1.pool.remove', { summary: 'Remove the durable consumer of (agent, pool)', input: z.object({ agentId: AgentId, pool: z.string().max(200) }), output: z.object({ removed: z.boolean() }), idempotent: true }),

  openEdge: rpc('ambit.rpc.session-service.v1.edge.open', {
    summary: 'The run in which an edge token’s calls are made, with the snapshot of the world as it is now; made where there is none, and kept for as long as it is asked for',
    input: z.object({ tokenId: Uuid, agentId: AgentId, principal: Principal, sessionId: Uuid.nullable().default(null), runId: Uuid.nullable().default(null).meta({ description: 'A worker’s run: it is used as it is, and none is made' }) }),
    output: RunRef.extend({ agentId: AgentId, projectId: ProjectId, degraded: z.array(z.string().max(60)).max(20) }),
    errors: { AGENT_UNKNOWN: unknown('agent'), SESSION_UNKNOWN: unknown('session'), ...refusing('AGENT_DISABLED', 'TURN_ENDED') }, idempotent: true, timeoutMs: 15_000,
  }),

  startRun: rpc('ambit.rpc.session-service.v1.run.start.{agentId}', {
    summary: 'Open an attempt; the tape is the state, and a redelivered or resumed run goes on where it stopped', audience: 'worker',
    input: RunRef.extend({ workerId: Uuid.optional() }), output: TapeView.extend({ token: z.string(), attempt: z.int().min(1) }), errors: { ...own, ...refusing('AGENT_DISABLED') }, timeoutMs: 15_000,
  }),
  stepRun: rpc('ambit.rpc.session-service.v1.run.step.{agentId}', {
    summary: 'Store what the model said, compare-and-set on `step`, before its calls are executed', audience: 'worker',
    input: RunRefWithToken.extend({ step: z.int().min(0), role: z.literal('assistant'), content: z.array(ContentBlock).max(1_000), calls: z.array(IntendedCall).max(128), stop: z.string().max(100).nullish(), raw: z.unknown().optional(), usage: Usage.nullish() }),
    output: z.object({ step: z.int().min(0) }),
    errors: { ...own, STEP_TAKEN: { status: 409, retry: 'never', message: 'This step is stored already; read the tape and go on from there', data: z.object({ step: z.int() }) }, CALL_ID_REPEATED: { status: 400, retry: 'never', message: 'Call ids must differ within a step' } },
  }),
  readTape: rpc('ambit.rpc.session-service.v1.tape.read.{agentId}', { summary: 'The tape as run.start answers it', audience: 'worker', input: RunRefWithToken.extend({ before: z.int().optional() }), output: TapeView, errors: own, idempotent: true }),
  renewRun: rpc('ambit.rpc.session-service.v1.run.renew.{agentId}', { summary: 'Keep the attempt (every 5 s, TTL 15 s) and learn of a cancel', audience: 'worker', input: RunRefWithToken, output: z.object({ cancelled: z.boolean() }), errors: own, idempotent: true }),
  refreshRun: rpc('ambit.rpc.session-service.v1.run.refresh.{agentId}', { summary: 'After a skill activation: a new fingerprint, valid from the next step', audience: 'worker', input: RunRefWithToken, output: z.object({ fingerprint: Hex64, instructions: z.string().max(256 * 1024) }), errors: own }),
  askPermission: rpc('ambit.rpc.session-service.v1.permission.ask.{agentId}', {
    summary: 'A worker’s agent asks a person before it does something with a tool of its own; asked again with the same key, how it stands. Nobody is asked in full access', audience: 'worker',
    input: RunRefWithToken.extend({
      key: z.string().min(1).max(200).meta({ description: 'Names this one question within its run' }),
      action: z.string().regex(/^[a-z][a-z0-9_]{0,49}$/).meta({ description: 'What kind of thing: read, edit, execute, …' }),
      title: z.string().min(1).max(500),
      preview: z.string().max(16 * 1024).default(''),
      expiresMs: z.int().min(1_000).max(600_000).default(60_000),
      withdrawn: z.boolean().default(false).meta({ description: 'Nobody waits for it any more' }),
    }),
    output: z.object({ interactionId: Uuid.nullable(), status: InteractionStatus }),
    errors: { ...own, ...refusing('APPROVAL_CAPACITY', 'AGENT_DISABLED') }, idempotent: true,
  }),
  openRunEdge: rpc('ambit.rpc.session-service.v1.run.edge.{agentId}', {
    summary: 'A token with which an ACP agent reaches the tools of this run at the edge', audience: 'worker',
    input: RunRefWithToken, output: z.object({ token: z.string(), expiresAt: Instant }),
    errors: { ...own, AGENT_KIND: { status: 409, retry: 'never', message: 'Only an ACP agent reaches its tools through the edge; the calls of others are batches' } },
  }),
  finishRun: rpc('ambit.rpc.session-service.v1.run.finish.{agentId}', {
    summary: 'Close the attempt; `waiting` suspends the run until its decisions are taken', audience: 'worker',
    input: RunRefWithToken.extend({ status: z.enum(['completed', 'waiting', 'failed', 'cancelled']), reason: z.string().max(2_000).optional(), code: z.enum(['WORKSPACE_UNAVAILABLE', 'WORKER_FAILED', 'LIMIT_REACHED']).optional() }),
    output: z.object({ status: RunStatus, resumeRunId: Uuid.nullable() }), errors: { ...own, OPEN_CALLS: { status: 409, retry: 'never', message: 'Calls of the last step have no result yet; execute them before finishing as completed' } },
  }),

  ...delegation,

  runExecute: job('ambit.job.session-service.v1.run.execute.{agentId}.{pool}', { summary: 'A run for one worker of the agent’s pool', payload: RunJob, stream: streams.runs.name }),

  runChanged: event('ambit.evt.session-service.v1.run.changed.{runId}', { summary: 'A run’s status changed', payload: z.object({ runId: Uuid, originRunId: Uuid, sessionId: Uuid, agentId: AgentId, status: RunStatus, attempt: z.int(), fingerprint: Hex64, resumes: Uuid.nullable(), fault: FaultBodySchema.nullable(), at: Instant }) }),
  tapeAppended: event('ambit.evt.session-service.v1.tape.appended.{runId}', { summary: 'Entries joined the tape; `preview` is at most 4 KiB', payload: z.object({ sessionId: Uuid, runId: Uuid, entryId: z.int(), kind: TapeEntry.shape.kind, step: z.int().nullable(), role: z.string().nullable(), preview: z.string().max(4_100), at: Instant }) }),
  interactionRequested: event('ambit.evt.session-service.v1.interaction.requested.{runId}', { summary: 'A person has to decide', payload: z.object({ interaction: Interaction, url: z.string().max(2_048).nullable() }) }),
  interactionSettled: event('ambit.evt.session-service.v1.interaction.settled.{runId}', { summary: 'A decision was taken, expired or was cancelled', payload: z.object({ interactionId: Uuid, runId: Uuid, sessionId: Uuid, operationId: Hex64, status: InteractionStatus, decidedBy: Principal.nullable(), at: Instant }) }),
  messagePosted: event('ambit.evt.session-service.v1.message.posted.{sessionId}', { summary: 'The agent’s answer, with the keys of the message it answers', payload: z.object({ sessionId: Uuid, runId: Uuid, agentId: AgentId, adapter: z.string(), endpoint: z.string(), sceneId: z.string(), thread: z.string().nullable(), replyTo: z.string().nullable(), principal: Principal, content: z.array(ContentBlock), at: Instant }) }),
  snapshotPublished: event('ambit.evt.session-service.v1.snapshot.published.{agentId}', { summary: 'A new snapshot was composed', payload: z.object({ agentId: AgentId, fingerprint: Hex64, tools: z.int(), skills: z.int(), at: Instant }) }),
  mappingPublished: event('ambit.evt.session-service.v1.mapping.published.{sessionId}', { summary: 'A session was given a fingerprint', payload: z.object({ sessionId: Uuid, agentId: AgentId, fingerprint: Hex64, at: Instant }) }),
  agentChanged: event('ambit.evt.session-service.v1.agent.changed.{agentId}', { summary: 'An agent or its policy changed', payload: z.object({ agentId: AgentId, version: z.int(), policyVersion: z.int(), deleted: z.boolean(), at: Instant }) }),
  listAudit: auditReading('session-service'),
  auditAppended: auditEvent('session-service'),

  runOutput: signal('ambit.ctl.session-service.v1.run.output.{agentId}.{runId}', { summary: 'Text deltas to whoever listens now', payload: z.object({ text: z.string().max(64 * 1024) }), audience: 'worker' }),
  runStopped: signal('ambit.ctl.session-service.v1.run.stopped.{runId}', { summary: 'A gateway says that it has no open call of this run any more', payload: z.object({ runId: Uuid, gatewayId: Uuid, stopped: z.int().min(0) }) }),
};
