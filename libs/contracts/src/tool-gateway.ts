import { z } from 'zod';
import { auditEvent, auditReading } from './audit.js';
import { event, job, rpc, signal } from './kit/contract.js';
import { OutcomeStatus } from './journal.js';
import { AgentId, demands, Exposure, FaultBodySchema, Hex64, Instant, JsonObject, page, PageInput, Principal, ProjectId, Target, ToolEffect, Uuid } from './nouns.js';
import { refusing } from './refusals.js';
import { CallResult, IntendedCall, RunRef } from './session-service.js';
import { FileEntry, SkillName } from './skill-file.js';
import { streams } from './streams.js';

/** What a tool reaches, which decides how a permission mode treats it. A worker may not claim `session`, `mcp` or `delegation`. */
export const ToolAccess = z.enum(['session', 'file', 'command', 'settings', 'mcp', 'delegation', 'other']);

/** A built-in or worker tool as registered; exposure is explicit, an unlisted one does not exist. */
export const ToolRegistration = z
  .object({
    name: z.string().min(1).max(64),
    exposure: Exposure,
    description: z.string().max(16 * 1024),
    inputSchema: JsonObject,
    outputSchema: JsonObject.optional(),
    effect: ToolEffect,
    access: ToolAccess.default('other'),
    /** May run beside other read calls of its batch. */
    parallel: z.boolean().default(false),
    version: z.int().min(1).default(1),
    /** Asks a person in every mode. */
    requiresConfirmation: z.boolean().default(false),
    /** Of a built-in: it is there only after the run viewed this skill. */
    requiresSkill: z.string().max(64).optional(),
    /** Of a built-in: it is there only while skills are switched on. */
    needsSkills: z.boolean().optional(),
    /** Of a built-in: it is there only where a skill of the run has an enabled script, and a worker of the agent brings `exec`. */
    needsScripts: z.boolean().optional(),
    /** Of a built-in: it is there only where a tool of the run waits to be loaded. */
    needsDeferred: z.boolean().optional(),
    ...demands,
  })
  .meta({ id: 'ToolRegistration' });
export type ToolRegistration = z.output<typeof ToolRegistration>;

export const Toolset = z.object({ agentId: AgentId, digest: Hex64, tools: z.array(ToolRegistration).max(200), pool: z.string().max(200), live: z.boolean() }).meta({ id: 'Toolset' });
export type Toolset = z.output<typeof Toolset>;

export const CallRecord = z
  .object({
    operationId: Hex64,
    originRunId: Uuid,
    runId: Uuid,
    sessionId: Uuid,
    agentId: AgentId,
    projectId: ProjectId,
    step: z.int(),
    callId: z.string(),
    tool: z.string(),
    /** Null: a refused call that named nothing in the snapshot. */
    target: Target.nullable(),
    argumentsHash: Hex64,
    /** Redacted and bounded; absent once its retention ended. */
    argumentsPreview: z.string().nullable(),
    fingerprint: Hex64,
    principal: z.string(),
    rule: z.string().nullable(),
    interactionId: Uuid.nullable(),
    approvedBy: z.string().nullable(),
    status: z.union([OutcomeStatus, z.enum(['running', 'aborting', 'refused'])]),
    /** Claimed without a known outcome, and nobody has resolved it. */
    parked: z.boolean(),
    fault: FaultBodySchema.nullable(),
    result: z.object({ digest: Hex64, bytes: z.int() }).nullable(),
    resolution: z.object({ as: z.enum(['completed', 'failed']), by: Principal, note: z.string(), at: Instant }).nullable(),
    claimedAt: Instant,
    endedAt: Instant.nullable(),
    durationMs: z.number().nullable(),
  })
  .meta({ id: 'CallRecord' });
export type CallRecord = z.output<typeof CallRecord>;

export const DeferredCall = z
  .object({
    schemaVersion: z.literal(1),
    interactionId: Uuid,
    operationId: Hex64,
    runId: Uuid,
    originRunId: Uuid,
    sessionId: Uuid,
    agentId: AgentId,
    fingerprint: Hex64,
    step: z.int().min(0),
    call: IntendedCall,
    argumentsHash: Hex64,
    target: Target.nullable(),
    policyVersion: z.int().min(1),
    decidedBy: Principal,
    decidedAt: Instant,
  })
  .meta({ id: 'DeferredCall' });
export type DeferredCall = z.output<typeof DeferredCall>;

const RunNames = z.object({ runId: Uuid, sessionId: Uuid, agentId: AgentId });
/** Calls of one event at most: those of a run that ended within a moment are told together. */
export const CALLS_ENDED_TOGETHER = 50;
const CallEnd = z.object({ operationId: Hex64, callId: z.string(), tool: z.string(), status: z.union([OutcomeStatus, z.enum(['refused', 'waiting'])]), fault: FaultBodySchema.nullable(), rule: z.string().nullable(), durationMs: z.number().nullable(), at: Instant });
/** One call of such an event, as whoever follows the run over HTTP is told of it. */
export const EndedCall = RunNames.extend(CallEnd.shape);
export type EndedCall = z.output<typeof EndedCall>;

/** One message that a server logged while it worked on a call. */
export const CallLog = z.object({ level: z.string().max(20), logger: z.string().max(200).optional(), data: z.unknown() }).meta({ id: 'CallLog' });
export type CallLog = z.output<typeof CallLog>;

const callUnknown = { status: 404, retry: 'never', message: 'There is no such call' } as const;
const artifactUnknown = { status: 404, retry: 'never', message: 'There is no such artifact in this session' } as const;
const RunToken = RunRef.extend({ token: z.string().min(20).max(200) });
/** At most 256 KiB a call, base64. */
const Chunk = z.string().max(350_000);

export const toolGateway = {
  executeBatch: rpc('ambit.rpc.tool-gateway.v1.batch.execute.{agentId}', {
    summary: 'Execute the calls of a stored step; repeating it attaches to what runs and never starts it again', audience: 'worker',
    input: RunToken.extend({ step: z.int().min(0), calls: z.array(IntendedCall).min(1).max(128) }),
    output: z.object({ results: z.array(CallResult) }),
    errors: refusing('TOOL_NOT_IN_SNAPSHOT', 'TURN_ENDED', 'STALE_INSTANCE', 'BAD_ARGUMENTS'), timeoutMs: 30 * 60_000,
  }),
  executeCall: rpc('ambit.rpc.tool-gateway.v1.call.execute', {
    summary: 'Execute one call of a run that stores no steps, as an MCP client makes it; the same call id again attaches to it and never starts it again',
    input: RunRef.extend({ agentId: AgentId, call: IntendedCall, progressTo: Uuid.nullable().default(null).meta({ description: 'The edge that is told of its progress' }) }),
    output: z.object({ operationId: Hex64, result: CallResult }),
    errors: refusing('TOOL_NOT_IN_SNAPSHOT', 'TURN_ENDED', 'STALE_INSTANCE'), idempotent: true, timeoutMs: 30 * 60_000,
  }),
  registerWorker: rpc('ambit.rpc.tool-gateway.v1.worker.register.{agentId}', {
    summary: 'A worker process says that it lives, and which tools it brings; every 5 s, TTL 15 s', audience: 'worker',
    input: z.object({ workerId: Uuid, pool: z.string().max(200).default('shared'), toolsetDigest: Hex64.nullable().default(null), tools: z.array(ToolRegistration).max(200).optional() }),
    output: z.object({ toolsetDigest: Hex64.nullable(), wantTools: z.boolean() }),
    errors: { NAME_RESERVED: { status: 409, retry: 'never', message: 'A worker’s tool may not carry a reserved name', data: z.object({ name: z.string() }) }, EXPOSURE_MISMATCH: { status: 400, retry: 'never', message: 'A worker may register user-configurable tools only', data: z.object({ name: z.string() }) } },
    idempotent: true,
  }),
  readArtifact: rpc('ambit.rpc.tool-gateway.v1.artifact.read.{agentId}', {
    summary: 'A range of a stored result of the run’s session, at most 256 KiB', audience: 'worker',
    input: RunToken.extend({ digest: Hex64, offset: z.int().min(0).default(0), length: z.int().min(1).max(256 * 1024).default(64 * 1024) }),
    output: z.object({ data: Chunk.meta({ description: 'base64' }), bytes: z.int(), next: z.int().nullable() }), errors: { ARTIFACT_UNKNOWN: artifactUnknown, ...refusing('TOOL_NOT_IN_SNAPSHOT', 'STALE_INSTANCE') }, idempotent: true,
  }),
  writeArtifact: rpc('ambit.rpc.tool-gateway.v1.artifact.write.{agentId}', {
    summary: 'Store bytes for the run’s session, a chunk at a time; the last chunk closes and is checked against the digest', audience: 'worker',
    input: RunToken.extend({ uploadId: Uuid, offset: z.int().min(0), data: Chunk, last: z.boolean(), digest: Hex64 }),
    output: z.object({ stored: z.boolean(), bytes: z.int() }),
    errors: { ARTIFACT_DIGEST: { status: 400, retry: 'never', message: 'The bytes do not hash to the digest given; send them again' }, ...refusing('TOOL_NOT_IN_SNAPSHOT', 'STALE_INSTANCE') },
  }),
  getArtifact: rpc('ambit.rpc.tool-gateway.v1.artifact.get', { summary: 'A range of a stored result, for services', input: z.object({ sessionId: Uuid, digest: Hex64, offset: z.int().min(0).default(0), length: z.int().min(1).max(256 * 1024).default(64 * 1024) }), output: z.object({ data: Chunk, bytes: z.int(), next: z.int().nullable() }), errors: { ARTIFACT_UNKNOWN: artifactUnknown }, idempotent: true }),

  listTools: rpc('ambit.rpc.tool-gateway.v1.tool.list', {
    summary: 'Registered built-in tools and live worker toolsets; pure, asks no server', input: z.object({ purpose: z.enum(['ingress', 'configurable', 'diagnostic']), agentId: AgentId.optional() }),
    output: z.object({ epoch: z.int(), reservedTableVersion: z.int(), tools: z.array(ToolRegistration), toolsets: z.array(Toolset), /** Groups of built-in tools that could not be loaded. */ unavailable: z.array(z.object({ group: z.string().max(60), detail: z.string().max(500) })).max(50).default([]) }), idempotent: true,
  }),
  listCalls: rpc('ambit.rpc.tool-gateway.v1.call.list', { summary: 'Calls, newest first', input: z.object({ sessionId: Uuid.optional(), runId: Uuid.optional(), originRunId: Uuid.optional(), agentId: AgentId.optional(), projectId: ProjectId.optional(), parked: z.boolean().optional(), ...PageInput }), output: page(CallRecord), idempotent: true }),
  erasePrincipal: rpc('ambit.rpc.tool-gateway.v1.principal.erase', {
    summary: 'Remove the arguments of a principal’s calls, what failures said, its names, and stored results and plans of its sessions; digests stay',
    input: z.object({ principal: Principal.shape.id, sessionIds: z.array(Uuid).max(1_000) }), output: z.object({ calls: z.int().min(0), artifacts: z.int().min(0) }), idempotent: true, timeoutMs: 120_000,
  }),
  getCall: rpc('ambit.rpc.tool-gateway.v1.call.get', { summary: 'One call by its operation id', input: z.object({ operationId: Hex64 }), output: CallRecord, errors: { CALL_UNKNOWN: callUnknown }, idempotent: true }),
  resolveCall: rpc('ambit.rpc.tool-gateway.v1.call.resolve', {
    summary: 'A person says how a parked call ended', input: z.object({ operationId: Hex64, as: z.enum(['completed', 'failed']), note: z.string().min(1).max(2_000), by: Principal }), output: CallRecord,
    errors: { CALL_UNKNOWN: callUnknown, CALL_NOT_PARKED: { status: 409, retry: 'never', message: 'Only a parked call takes a resolution' } },
  }),
  cancelCall: rpc('ambit.rpc.tool-gateway.v1.call.cancel', { summary: 'Cancel one running call', input: z.object({ operationId: Hex64, reason: z.string().max(200).default('cancelled by a person') }), output: z.object({ state: z.enum(['stopped', 'stopping', 'ended', 'unknown']) }), idempotent: true }),
  askTool: rpc('ambit.rpc.tool-gateway.v1.tool.diagnose', { summary: 'Run a diagnostic tool for an administrator', input: z.object({ sessionId: Uuid, name: z.string().max(128), arguments: JsonObject.default({}) }), output: z.object({ content: z.unknown() }), errors: refusing('TOOL_NOT_IN_SNAPSHOT', 'BAD_ARGUMENTS') }),

  clearSession: rpc('ambit.rpc.tool-gateway.v1.session.clear', {
    summary: 'Drop what is kept for a session: its plan, and with `whole` its artifacts, arguments, facts and parked calls; `open` counts calls that have not ended yet',
    input: z.object({ sessionId: Uuid, whole: z.boolean(), /** Only stops the calls and counts those that are open: of a session with many runs, before anything of it goes. */ look: z.boolean().default(false), before: Instant, by: Principal.nullable().default(null), runs: z.array(z.object({ runId: Uuid, originRunId: Uuid })).max(10_000) }),
    output: z.object({ open: z.int().min(0) }), idempotent: true, timeoutMs: 10_000,
  }),

  askBack: rpc('ambit.rpc.tool-gateway.v1.call.ask-back.{gatewayId}', {
    summary: 'What a server asks for within a call that this gateway dispatched: a question to a person, a completion, the roots; answered while the call goes on',
    input: z.object({ operationId: Hex64, serverId: Uuid, number: z.int().min(1).max(1_000).meta({ description: 'Of this question within its call' }), kind: z.enum(['elicitation', 'sampling', 'roots']), key: z.string().max(200).optional().meta({ description: 'What its server calls it, among those that it asks for at once' }), params: JsonObject }),
    output: z.object({ result: JsonObject.meta({ description: 'The result for the server, as MCP defines it' }) }),
    errors: {
      NO_CALL: { status: 409, retry: 'never', message: 'No such call is in progress: a server may ask only while it works on one' },
      ASK_REFUSED: { status: 403, retry: 'never', message: 'What the server asked for is not given', data: z.object({ reason: z.string().max(500) }) },
    },
    timeoutMs: 3_600_000,
  }),

  executeDeferred: job('ambit.job.tool-gateway.v1.call.execute-deferred.{sessionId}', { summary: 'An approved call to execute, under the asking call’s operation id', payload: DeferredCall, stream: streams.deferred.name }),

  callStarted: event('ambit.evt.tool-gateway.v1.call.started.{runId}', { summary: 'A call was claimed and is about to be dispatched; told only where hooks are switched on', payload: z.object({ runId: Uuid, sessionId: Uuid, agentId: AgentId, operationId: Hex64, callId: z.string(), tool: z.string(), rule: z.string().nullable(), at: Instant }) }),
  callEnded: event('ambit.evt.tool-gateway.v1.call.ended.{runId}', { summary: 'Calls of a run ended, were refused, parked or wait', payload: RunNames.extend({ calls: z.array(CallEnd).min(1).max(CALLS_ENDED_TOGETHER) }) }),
  callParked: event('ambit.evt.tool-gateway.v1.call.parked.{operationId}', { summary: 'A call’s end is unknown and a person has to look', payload: z.object({ operationId: Hex64, runId: Uuid, sessionId: Uuid, agentId: AgentId, /** Absent in what was told before there were notifications. */ projectId: ProjectId.optional(), tool: z.string(), at: Instant }) }),
  toolsChanged: event('ambit.evt.tool-gateway.v1.toolset.changed.{agentId}', { summary: 'A worker toolset of this agent came or went', payload: z.object({ agentId: AgentId, digest: Hex64, live: z.boolean(), at: Instant }) }),
  listAudit: auditReading('tool-gateway'),
  auditAppended: auditEvent('tool-gateway'),

  stepStored: signal('ambit.ctl.tool-gateway.v1.step.stored.{runId}', { summary: 'A hint: the calls of a newly stored step, by digest', payload: z.object({ runId: Uuid, step: z.int().min(0), callsBefore: z.int().min(0), calls: z.array(z.object({ callId: z.string().max(200), digest: Hex64 })).max(128), cut: z.boolean().optional() }) }),
  cancelRunCalls: signal('ambit.ctl.tool-gateway.v1.run.cancel.{runId}', { summary: 'The run’s authority moved: drop what is held of it and stop its open calls when `abort` says so', payload: z.object({ runId: Uuid, abort: z.boolean(), reason: z.string().max(200) }) }),
  cancelOperation: signal('ambit.ctl.tool-gateway.v1.call.cancel.{operationId}', { summary: 'Stop one open call; its abort fact stands in the journal', payload: z.object({ operationId: Hex64, reason: z.string().max(200) }) }),
  callLogged: signal('ambit.ctl.tool-gateway.v1.call.log.{gatewayId}', { summary: 'A log message of a server within a running call, from who executes it', payload: CallLog.extend({ operationId: Hex64 }) }),
  callProgress: signal('ambit.ctl.tool-gateway.v1.call.progress.{gatewayId}', { summary: 'Progress of a running call, from who executes it', payload: z.object({ operationId: Hex64, progress: z.number(), total: z.number().optional(), message: z.string().max(1_000).optional() }) }),
};

/** What a call would touch, as its worker resolved it: canonical, relative to the session’s workspace where inside it, absolute where outside. */
export const PreparedTarget = z
  .object({
    paths: z.array(z.string().max(4_096)).max(1_000).default([]),
    cwd: z.string().max(4_096).nullable().default(null),
    argv: z.array(z.string()).default([]),
    /** The shell text of a command tool, exactly as it would run. */
    command: z.string().nullable().default(null),
  })
  .meta({ id: 'PreparedTarget' });
export type PreparedTarget = z.output<typeof PreparedTarget>;

/** How far a call may reach: decided by the gateway, held by the worker on every file that it opens. */
export const CallBounds = z
  .object({
    /** Whether paths outside the workspace were decided to be reachable, those of the prepared target and no others. */
    outside: z.boolean(),
    /** Names of folders that are closed to everybody, compared without case. */
    closed: z.array(z.string()),
  })
  .meta({ id: 'CallBounds' });
export type CallBounds = z.output<typeof CallBounds>;

/** Answered and heard by workers, in their own account. */
export const worker = {
  prepareTool: rpc('ambit.rpc.worker.v1.tool.prepare.{agentId}.{workerId}', {
    summary: 'Without effect: the canonical target of a worker tool’s call',
    input: z.object({ sessionId: Uuid, workspaceId: z.string().nullable(), tool: z.string().max(128), arguments: JsonObject }),
    output: PreparedTarget,
    errors: refusing('BAD_ARGUMENTS', 'TOOL_GONE', 'OUTSIDE_WORKSPACE', 'TOOL_FAILED'),
  }),
  callTool: rpc('ambit.rpc.worker.v1.tool.call.{agentId}.{workerId}', {
    summary: 'Run a worker tool on the prepared target',
    input: z.object({
      operationId: Hex64,
      sessionId: Uuid,
      runId: Uuid,
      workspaceId: z.string().nullable(),
      toolsetDigest: Hex64,
      tool: z.string().max(128),
      arguments: JsonObject,
      /** What the worker prepared and the gateway decided on: the call touches nothing else. */
      prepared: z.unknown().optional(),
      bounds: CallBounds.optional(),
      /** What the tool may ask for is granted: by the mode after it asked, or by a person. It asks no more. */
      granted: z.boolean().default(false),
      /** Of a script: the skill whose files were staged for this operation, and stand in a folder that the command knows as SKILL_ROOT while it runs. */
      skill: z.object({ name: SkillName, digest: Hex64, files: z.array(FileEntry).max(512) }).optional(),
    }),
    output: z.object({
      content: z.array(z.looseObject({ type: z.string() })),
      structuredContent: z.unknown().optional(),
      isError: z.boolean().default(false),
      /** Instead of content: the JSON text of `{content, structuredContent, isError}` is fetched in pages. */
      large: z.object({ digest: Hex64, bytes: z.int() }).optional(),
      /** The tool finds only now that it needs a permission; `nothingDone` is its word that the call had no effect. */
      asks: z.object({ reason: z.string().max(500), nothingDone: z.boolean() }).optional(),
    }),
    errors: refusing('BAD_ARGUMENTS', 'TOOL_GONE', 'TARGET_CHANGED', 'TOOL_FAILED', 'OUTSIDE_WORKSPACE'),
    timeoutMs: 30 * 60_000,
  }),
  stageFile: rpc('ambit.rpc.worker.v1.call.stage.{agentId}.{workerId}', {
    summary: 'A part of a file that a call will need, kept for it for 60 s; parts come in order',
    input: z.object({ operationId: Hex64, digest: Hex64, offset: z.int().min(0), data: Chunk }),
    output: z.object({ have: z.int().min(0) }),
    errors: refusing('TOOL_FAILED', 'TOOL_GONE'),
  }),
  resultPage: rpc('ambit.rpc.worker.v1.call.result.{agentId}.{workerId}', {
    summary: 'Bytes of a large result, kept by its worker for 60 s',
    input: z.object({ operationId: Hex64, offset: z.int().min(0) }),
    output: z.object({ data: z.string().max(350_000).meta({ description: 'base64 of at most 256 KiB' }), next: z.int().nullable() }),
    errors: { RESULT_GONE: { status: 410, retry: 'never', message: 'The result is no longer held; the call has happened' } },
    idempotent: true,
  }),
  batchProgress: signal('ambit.ctl.worker.v1.batch.progress.{agentId}.{workerId}', { summary: 'Every 2 s while a batch runs; after three misses send the same batch again', payload: z.object({ runId: Uuid, step: z.int(), running: z.array(z.string()), progress: z.array(z.object({ callId: z.string(), progress: z.number(), total: z.number().optional(), message: z.string().optional() })), /** What servers logged since the last one. */ logs: z.array(CallLog.extend({ callId: z.string() })).max(100).optional() }) }),
  cancelCall: signal('ambit.ctl.worker.v1.call.cancel.{agentId}.{workerId}', { summary: 'Stop a worker tool’s call', payload: z.object({ operationId: Hex64, reason: z.string() }) }),
  endSession: signal('ambit.ctl.worker.v1.session.end.{agentId}.{workerId}', { summary: 'The session is gone: end what its calls left running', payload: z.object({ sessionId: Uuid }) }),
  cancelRun: signal('ambit.ctl.worker.v1.run.cancel.{agentId}.{workerId}', { summary: 'The run was cancelled; stop sampling', payload: z.object({ runId: Uuid, reason: z.string() }) }),
};
