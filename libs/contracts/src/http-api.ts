import { z } from 'zod';
import { Credential, CredentialSubject } from './authorization.js';
import { adminApi, EdgeNames, EdgeToken, Notify, NotifyDelivery, NotifySink, Role, RoleGrant, Token, WorkerCredential } from './admin-api.js';
import { AuditRecord } from './audit.js';
import { Delegation } from './delegation.js';
import type { FaultDef } from './kit/fault.js';
import { route } from './kit/http-route.js';
import { mcpBroker, Secret, Server, ServerSpec } from './mcp-broker.js';
import { Switch, SwitchName } from './mcp-skills.js';
import { AgentId, Hex64, Instant, JsonObject, page, PageInput, Principal, ProjectId, SetName, Slug, Uuid } from './nouns.js';
import { Plugin, PluginId, pluginRegistry, Publisher } from './plugin-registry.js';
import { Agent, AgentKind, Answer, Explanation, Interaction, MessageIn, Project, Run, Session, sessionService, TapeEntry } from './session-service.js';
import { FileEntry, SkillName } from './skill-file.js';
import { ScriptPath, Skill, skillStore } from './skill-store.js';
import { CallRecord, toolGateway, ToolRegistration } from './tool-gateway.js';

const Paging = { cursor: PageInput.cursor, limit: z.coerce.number().int().min(1).max(200).default(50) };
const InProject = { projectId: ProjectId.optional() };
const InSet = { set: Slug.optional() };

/**
 * An agent over HTTP and in ambit.yaml: `policy` is a policy document, whose lists say `all`, `none` or names
 * (libs/capability, PolicyDocument, gives its exact shape).
 */
const Written = { kind: AgentKind.default('sdk'), enabled: z.boolean().default(true), model: z.string().max(200).default(''), instructions: z.string().max(256 * 1024).default(''), policy: JsonObject.default({}), match: Agent.shape.match.default([]), projectId: ProjectId.default('default'), set: SetName.default(null) };
export const AgentDocument = z.strictObject(Written).meta({ id: 'AgentDocument' });
export type AgentDocument = z.output<typeof AgentDocument>;
export const WrittenAgent = Agent.omit({ policy: true }).extend({ policy: JsonObject }).meta({ id: 'WrittenAgent', description: 'An agent with its policy as people write it' });
export type WrittenAgent = z.output<typeof WrittenAgent>;

/** The desired state of one set with its files uploaded: what `ambit apply` sends. */
export const DesiredState = z
  .strictObject({
    apiVersion: z.literal('ambit/v1'),
    set: Slug,
    project: ProjectId.default('default'),
    secrets: z.record(Slug, z.strictObject({ from: z.enum(['env', 'file', 'store']), key: z.string().max(500).nullable().default(null) })).default({}),
    servers: z.record(Slug, ServerSpec.omit({ slug: true, projectId: true, owner: true, set: true, toolPolicy: true })).default({}),
    plugins: z.record(PluginId, z.strictObject({ files: z.array(FileEntry).max(4_096), version: z.string().max(100).optional(), publisher: Slug.optional(), unsigned: z.enum(['allow', 'refuse']).default('refuse'), enabled: z.boolean().default(true) })).default({}),
    skills: z.record(SkillName, z.strictObject({ files: z.array(FileEntry).max(4_096), /** Which of its scripts the agents may run. */ scripts: z.array(ScriptPath).max(200).default([]) })).default({}),
    agents: z.record(AgentId, AgentDocument.omit({ projectId: true, set: true })).default({}),
    /** Which skills of `skills` each agent gets into its own scope. */
    agentSkills: z.record(AgentId, z.array(SkillName).max(200)).default({}),
    access: z.array(RoleGrant.pick({ who: true, role: true }).extend({ agents: z.array(AgentId).max(1_000).nullable().default(null), onBehalfOf: z.array(z.string().max(200)).max(100).default([]) })).max(1_000).default([]),
    notify: z.array(Notify).max(100).default([]),
  })
  .meta({ id: 'DesiredState' });
export type DesiredState = z.output<typeof DesiredState>;

export const PlannedChange = z
  .object({ kind: z.enum(['project', 'secret', 'server', 'plugin', 'skill', 'agent', 'access', 'notify']), name: z.string(), action: z.enum(['create', 'update', 'unchanged', 'delete', 'keep']), /** What differs, in words. */ detail: z.string() })
  .meta({ id: 'PlannedChange' });
export type PlannedChange = z.output<typeof PlannedChange>;
export const Plan = z.object({ digest: Hex64, set: Slug, changes: z.array(PlannedChange) }).meta({ id: 'Plan' });
export type Plan = z.output<typeof Plan>;

export const RunEvent = z.object({ id: z.int(), type: z.string(), at: Instant, data: JsonObject }).meta({ id: 'RunEvent', description: 'One server-sent event of a run: `type` is the event’s noun and verb, as in run.changed' });
export type RunEvent = z.output<typeof RunEvent>;

const conflict = { status: 409, retry: 'never', message: 'It changed since you read it; read it again' } as const satisfies FaultDef;
const { SECRET_UNKNOWN, URL_REFUSED } = mcpBroker.putServer.errors;
/** Said of a webhook before anything is changed. */
const refusedWebhook = { SECRET_UNKNOWN, URL_REFUSED };
const refusedPlan = { ...refusedWebhook, AGENT_AMBIGUOUS: { ...sessionService.putAgent.errors.AGENT_AMBIGUOUS, message: 'One message would match several of these agents; a tie is an error' } } as const;
const BlobPart = skillStore.putBlob.input;

/** The whole HTTP surface. */
export const httpApi = {
  whoAmI: route('GET /v1/whoami', { summary: 'Who the token speaks for, and with which roles', action: 'read', output: z.object({ principal: Principal, groups: z.array(z.string()), grants: z.array(RoleGrant) }) }),
  status: route('GET /v1/status', { summary: 'Which services answer, and what the installation isolates', action: 'read', output: z.object({ version: z.string(), services: z.array(z.object({ name: z.string(), instances: z.int(), version: z.string() })), workerIsolation: z.boolean() }) }),

  listProjects: route('GET /v1/project', { summary: 'Projects', action: 'read', query: z.object(Paging), output: page(Project) }),
  putProject: route('PUT /v1/project/{id}', { summary: 'Create or change a project', action: 'administer', params: z.object({ id: ProjectId }), body: z.object({ display: z.string().max(200).default('') }), output: Project }),

  listAgents: route('GET /v1/agent', { summary: 'Agents', action: 'read', query: z.object({ ...InProject, ...InSet, ...Paging }), output: page(WrittenAgent) }),
  getAgent: route('GET /v1/agent/{id}', { summary: 'One agent', action: 'read', params: z.object({ id: AgentId }), output: WrittenAgent, errors: sessionService.getAgent.errors }),
  putAgent: route('PUT /v1/agent/{id}', { summary: 'Create or change an agent; If-Match holds the version you saw', action: 'administer', params: z.object({ id: AgentId }), body: AgentDocument, output: WrittenAgent, errors: sessionService.putAgent.errors }),
  deleteAgent: route('DELETE /v1/agent/{id}', { summary: 'Delete an agent that no session uses', action: 'administer', params: z.object({ id: AgentId }), output: sessionService.deleteAgent.output, errors: sessionService.deleteAgent.errors }),
  matchAgent: route('POST /v1/agent/match', { summary: 'Which agent a message would reach', action: 'read', body: sessionService.matchAgent.input, output: sessionService.matchAgent.output, errors: sessionService.matchAgent.errors }),

  listServers: route('GET /v1/server', { summary: 'MCP servers with their state', action: 'read', query: z.object({ ...InProject, ...InSet, ...Paging }), output: page(Server) }),
  getServer: route('GET /v1/server/{id}', { summary: 'One server by id', action: 'read', params: z.object({ id: Uuid }), output: Server, errors: mcpBroker.getServer.errors }),
  putServer: route('PUT /v1/server/{slug}', { summary: 'Create or change a server of a project', action: 'administer', params: z.object({ slug: Slug }), body: ServerSpec.omit({ slug: true, owner: true, toolPolicy: true }).extend({ ifGeneration: mcpBroker.putServer.input.shape.ifGeneration }), output: Server, errors: mcpBroker.putServer.errors }),
  deleteServer: route('DELETE /v1/server/{id}', { summary: 'Remove a server', action: 'administer', params: z.object({ id: Uuid }), output: mcpBroker.deleteServer.output, errors: mcpBroker.deleteServer.errors }),
  testServer: route('POST /v1/server/{id}/test', { summary: 'Connect now and list its tools', action: 'operate', params: z.object({ id: Uuid }), output: Server, errors: mcpBroker.testServer.errors }),

  getHeldTool: route('GET /v1/server/{id}/held', { summary: 'What a tool that is held back was when it was accepted, and what it is now', action: 'read', params: z.object({ id: Uuid }), query: z.object({ tool: z.string().min(1).max(128) }), output: mcpBroker.getHeldTool.output, errors: mcpBroker.getHeldTool.errors }),
  acceptTool: route('POST /v1/server/{id}/accept', { summary: 'Accept what a tool that is held back is now, by the digest that was looked at', action: 'administer', params: z.object({ id: Uuid }), body: z.object({ tool: z.string().min(1).max(128), digest: Hex64 }), output: Server, errors: mcpBroker.acceptTool.errors }),
  enableServer: route('POST /v1/server/{id}/enable', { summary: 'Switch a server on that was switched off by hand', action: 'operate', params: z.object({ id: Uuid }), output: Server, errors: mcpBroker.switchServer.errors }),
  disableServer: route('POST /v1/server/{id}/disable', { summary: 'Switch a server off by hand: it stays off, whatever its configuration or its plugin says', action: 'operate', params: z.object({ id: Uuid }), output: Server, errors: mcpBroker.switchServer.errors }),
  authorizeServer: route('POST /v1/server/{id}/authorize', { summary: 'Begin a sign-in to a server, for everybody, an agent or the caller; answers the address that a person opens', action: 'operate', params: z.object({ id: Uuid }), body: z.strictObject({ subject: CredentialSubject.optional().meta({ description: 'shared, agent:<id> or a principal; left out: shared, or the caller where the server takes everybody’s own' }) }), output: mcpBroker.startAuthorization.output, errors: mcpBroker.startAuthorization.errors }),
  authorizeInteraction: route('POST /v1/interaction/{id}/authorize', { summary: 'Begin the sign-in that a call waits for; when it is finished the call goes on', action: 'send', params: z.object({ id: Uuid }), output: mcpBroker.startAuthorization.output, errors: { ...mcpBroker.startAuthorization.errors, NO_INTERACTION: sessionService.getInteraction.errors.NO_INTERACTION } }),
  listAuthorizations: route('GET /v1/server/{id}/authorization', { summary: 'Whose credentials a server has, and how they stand', action: 'read', params: z.object({ id: Uuid }), query: z.object(Paging), output: page(Credential), errors: mcpBroker.listAuthorizations.errors }),
  removeAuthorization: route('DELETE /v1/server/{id}/authorization/{subject}', { summary: 'Sign out of a server and end what runs with these credentials', action: 'operate', params: z.object({ id: Uuid, subject: CredentialSubject }), output: mcpBroker.removeAuthorization.output, errors: mcpBroker.removeAuthorization.errors }),
  completeAuthorization: route('POST /v1/authorization/complete', { summary: 'Finish a sign-in with the address that the browser was sent to, where it could not open it', action: 'operate', body: z.strictObject({ callback: z.url().max(16 * 1024) }), output: mcpBroker.finishAuthorization.output, errors: mcpBroker.finishAuthorization.errors }),
  listSwitches: route('GET /v1/switch', { summary: 'What may be switched while everything runs, and how it stands', action: 'read', output: z.object({ items: z.array(Switch) }) }),
  putSwitch: route('PUT /v1/switch/{name}', { summary: 'Switch a feature on or off', action: 'administer', params: z.object({ name: SwitchName }), body: Switch.omit({ name: true }), output: Switch }),

  listSecrets: route('GET /v1/secret', { summary: 'Secrets by name; a value is never returned', action: 'read', query: z.object({ ...InProject, ...InSet, ...Paging }), output: page(Secret) }),
  putSecret: route('PUT /v1/secret/{name}', { summary: 'Declare a secret or set its value', action: 'administer', params: z.object({ name: Slug }), body: mcpBroker.putSecret.input.omit({ name: true }), output: Secret, errors: mcpBroker.putSecret.errors }),
  deleteSecret: route('DELETE /v1/secret/{name}', { summary: 'Remove a secret that no server names', action: 'administer', params: z.object({ name: Slug }), query: z.object({ projectId: ProjectId.default('default') }), output: mcpBroker.deleteSecret.output, errors: mcpBroker.deleteSecret.errors }),

  putSkillBlob: route('PUT /v1/blob/skill', { summary: 'Upload a part of a skill file or archive, at most 256 KiB', action: 'operate', body: BlobPart, output: skillStore.putBlob.output, errors: skillStore.putBlob.errors }),
  putPluginBlob: route('PUT /v1/blob/plugin', { summary: 'Upload a part of a plugin file or archive, at most 256 KiB', action: 'administer', body: BlobPart, output: pluginRegistry.putBlob.output, errors: pluginRegistry.putBlob.errors }),
  listSkills: route('GET /v1/skill', { summary: 'Skills of an agent, or of all', action: 'read', query: z.object({ agentId: AgentId.optional(), ...InProject, ...InSet, ...Paging }), output: page(Skill) }),
  getSkill: route('GET /v1/skill/{agentId}/{name}', { summary: 'One skill with its files', action: 'read', params: z.object({ agentId: AgentId, name: SkillName }), output: skillStore.getSkill.output, errors: skillStore.getSkill.errors }),
  putSkill: route('PUT /v1/skill/{agentId}', { summary: 'Give an agent a skill from uploaded files or a zip', action: 'operate', params: z.object({ agentId: AgentId }), body: skillStore.putSkill.input.omit({ agentId: true }), output: Skill, errors: skillStore.putSkill.errors }),
  enableSkill: route('POST /v1/skill/{agentId}/{name}/enable', { summary: 'Switch a skill on', action: 'operate', params: z.object({ agentId: AgentId, name: SkillName }), output: Skill, errors: skillStore.enableSkill.errors }),
  disableSkill: route('POST /v1/skill/{agentId}/{name}/disable', { summary: 'Switch a skill off', action: 'operate', params: z.object({ agentId: AgentId, name: SkillName }), output: Skill, errors: skillStore.disableSkill.errors }),
  enableScript: route('POST /v1/skill/{agentId}/{name}/script/enable', { summary: 'Let the agent run a script of this skill, as it is in this version', action: 'administer', params: z.object({ agentId: AgentId, name: SkillName }), body: skillStore.enableScript.input.pick({ digest: true, path: true }), output: skillStore.enableScript.output, errors: skillStore.enableScript.errors }),
  disableScript: route('POST /v1/skill/{agentId}/{name}/script/disable', { summary: 'Take the permission to run a script away', action: 'operate', params: z.object({ agentId: AgentId, name: SkillName }), body: skillStore.disableScript.input.pick({ path: true }), output: skillStore.disableScript.output, errors: skillStore.disableScript.errors }),
  deleteSkill: route('DELETE /v1/skill/{agentId}/{name}', { summary: 'Take a skill from an agent', action: 'operate', params: z.object({ agentId: AgentId, name: SkillName }), output: skillStore.deleteSkill.output, errors: skillStore.deleteSkill.errors }),

  previewImport: route('POST /v1/import/preview', { summary: 'What an import of skills into an agent would do; changes nothing', action: 'operate', body: skillStore.previewImport.input, output: skillStore.previewImport.output, errors: skillStore.previewImport.errors }),
  executeImport: route('POST /v1/import', { summary: 'Import skills as previewed; asked for text/event-stream, its progress comes first, as import.progressed, and the answer as import.finished or import.failed', action: 'operate', body: skillStore.executeImport.input.omit({ importId: true }), output: skillStore.executeImport.output, errors: skillStore.executeImport.errors, answers: 'progress' }),

  listPlugins: route('GET /v1/plugin', { summary: 'Plugins', action: 'read', query: z.object({ ...InProject, ...InSet, ...Paging }), output: page(Plugin) }),
  getPlugin: route('GET /v1/plugin/{id}', { summary: 'One plugin', action: 'read', params: z.object({ id: PluginId }), output: Plugin, errors: pluginRegistry.getPlugin.errors }),
  installPlugin: route('POST /v1/plugin', { summary: 'Verify and install a package', action: 'administer', body: pluginRegistry.installPlugin.input, output: Plugin, errors: pluginRegistry.installPlugin.errors }),
  enablePlugin: route('POST /v1/plugin/{id}/enable', { summary: 'Contribute everything or nothing', action: 'administer', params: z.object({ id: PluginId }), output: Plugin, errors: pluginRegistry.enablePlugin.errors }),
  disablePlugin: route('POST /v1/plugin/{id}/disable', { summary: 'Revoke everything everywhere, then answer', action: 'operate', params: z.object({ id: PluginId }), output: Plugin, errors: pluginRegistry.disablePlugin.errors }),
  uninstallPlugin: route('DELETE /v1/plugin/{id}', { summary: 'Disable and forget', action: 'administer', params: z.object({ id: PluginId }), output: pluginRegistry.uninstallPlugin.output, errors: pluginRegistry.uninstallPlugin.errors }),
  listPublishers: route('GET /v1/publisher', { summary: 'The keys whose signature on a plugin package counts', action: 'read', query: z.object({ ...Paging }), output: page(Publisher) }),
  trustPublisher: route('POST /v1/publisher', { summary: 'Trust a publisher’s key', action: 'administer', body: pluginRegistry.trustPublisher.input, output: Publisher, errors: pluginRegistry.trustPublisher.errors, status: 201 }),
  distrustPublisher: route('DELETE /v1/publisher/{keyId}', { summary: 'Trust a key no longer; nothing that it signed is switched on any more', action: 'administer', params: z.object({ keyId: Publisher.shape.keyId }), output: pluginRegistry.distrustPublisher.output }),

  postMessage: route('POST /v1/message', { summary: 'Send a message for a principal; needs an Idempotency-Key', action: 'send', body: MessageIn.omit({ idempotencyKey: true }), output: sessionService.receiveMessage.output, errors: sessionService.receiveMessage.errors, status: 202 }),
  createSession: route('POST /v1/session', { summary: 'Open a session without a message', action: 'send', body: sessionService.createSession.input, output: Session, errors: sessionService.createSession.errors, status: 201 }),
  listSessions: route('GET /v1/session', { summary: 'Sessions, newest first', action: 'read', query: z.object({ parentSessionId: Uuid.optional(), agentId: AgentId.optional(), principalId: z.string().max(200).optional(), ...InProject, ...Paging }), output: page(Session) }),
  getSession: route('GET /v1/session/{id}', { summary: 'One session', action: 'read', params: z.object({ id: Uuid }), output: Session, errors: sessionService.getSession.errors }),
  deleteSession: route('DELETE /v1/session/{id}', { summary: 'End a session’s runs and remove it whole', action: 'operate', params: z.object({ id: Uuid }), output: sessionService.deleteSession.output, errors: sessionService.deleteSession.errors }),
  updateSession: route('PUT /v1/session/{id}', { summary: 'Choose skills, permission mode or workspace; If-Match holds the version you saw', action: 'operate', params: z.object({ id: Uuid }), body: sessionService.updateSession.input.omit({ id: true, ifVersion: true }), output: Session, errors: sessionService.updateSession.errors }),
  transferSession: route('POST /v1/session/{id}/transfer', { summary: 'Give a session to another agent', action: 'operate', params: z.object({ id: Uuid }), body: sessionService.transferSession.input.omit({ id: true }), output: Session, errors: sessionService.transferSession.errors }),
  forkSession: route('POST /v1/session/{id}/fork', { summary: 'A new session with the same agent, choices and tape', action: 'operate', params: z.object({ id: Uuid }), output: Session, errors: sessionService.forkSession.errors, status: 201 }),
  listCommands: route('GET /v1/session/{id}/command', { summary: 'The skills that a person may call for by name in a session', action: 'read', params: z.object({ id: Uuid }), output: sessionService.listCommands.output, errors: sessionService.listCommands.errors }),
  listSkillDrafts: route('GET /v1/session/{id}/skill-draft', { summary: 'Skills that a session proposes', action: 'read', params: z.object({ id: Uuid }), output: skillStore.listDrafts.output, errors: sessionService.getSession.errors }),
  getSkillDraft: route('GET /v1/session/{id}/skill-draft/{name}', { summary: 'A proposed skill with its texts, as whoever decides on it reads it', action: 'read', params: z.object({ id: Uuid, name: SkillName }), output: skillStore.readDraft.output, errors: { ...sessionService.getSession.errors, ...skillStore.readDraft.errors } }),
  discardSkillDraft: route('DELETE /v1/session/{id}/skill-draft/{name}', { summary: 'Throw a proposed skill away', action: 'operate', params: z.object({ id: Uuid, name: SkillName }), output: skillStore.discardDraft.output, errors: sessionService.getSession.errors }),
  clearSession: route('POST /v1/session/{id}/clear', { summary: 'End what a session does and take back what it was given; its tape stays', action: 'operate', params: z.object({ id: Uuid }), output: Session, errors: sessionService.clearSession.errors }),
  listDelegations: route('GET /v1/session/{id}/delegation', { summary: 'What a session delegated to subagents', action: 'read', params: z.object({ id: Uuid }), output: z.object({ items: z.array(Delegation) }), errors: sessionService.getSession.errors }),
  createDraft: route('POST /v1/draft', { summary: 'What a session that does not exist yet would see; its first message names the draft', action: 'send', body: sessionService.createDraft.input, output: sessionService.createDraft.output, errors: sessionService.createDraft.errors, status: 201 }),
  listTape: route('GET /v1/session/{id}/tape', { summary: 'A session’s tape in order', action: 'read', params: z.object({ id: Uuid }), query: z.object({ after: z.coerce.number().int().min(0).default(0), limit: z.coerce.number().int().min(1).max(200).default(100) }), output: z.object({ items: z.array(TapeEntry), next: z.int().nullable() }), errors: sessionService.listTape.errors }),

  listRuns: route('GET /v1/run', { summary: 'Runs, newest first', action: 'read', query: z.object({ sessionId: Uuid.optional(), agentId: AgentId.optional(), status: Run.shape.status.optional(), ...InProject, ...Paging }), output: page(Run), errors: sessionService.getSession.errors }),
  getRun: route('GET /v1/run/{id}', { summary: 'One run', action: 'read', params: z.object({ id: Uuid }), output: Run, errors: sessionService.getRun.errors }),
  cancelRun: route('POST /v1/run/{id}/cancel', { summary: 'Cancel a run', action: 'operate', params: z.object({ id: Uuid }), body: z.object({ reason: z.string().max(200).optional() }).optional(), output: sessionService.cancelRun.output, errors: sessionService.getRun.errors }),
  followRun: route('GET /v1/run/{id}/events', { summary: 'What happens in a run and its resume runs, as server-sent events; Last-Event-ID resumes', action: 'read', params: z.object({ id: Uuid }), output: RunEvent, errors: sessionService.getRun.errors, answers: 'stream' }),

  listInteractions: route('GET /v1/interaction', { summary: 'Decisions that people have to take or took', action: 'decide', query: z.object({ sessionId: Uuid.optional(), runId: Uuid.optional(), status: Interaction.shape.status.optional(), ...InProject, ...Paging }), output: page(Interaction), errors: sessionService.getSession.errors }),
  getInteraction: route('GET /v1/interaction/{id}', { summary: 'One interaction', action: 'decide', params: z.object({ id: Uuid }), output: Interaction, errors: sessionService.getInteraction.errors }),
  decideInteraction: route('POST /v1/interaction/{id}/decide', { summary: 'Allow, deny or answer, once', action: 'decide', params: z.object({ id: Uuid }), body: z.object({ sessionId: Uuid.optional(), decision: z.enum(['allow', 'deny', 'answer']), answer: Answer.optional(), reason: z.string().max(1_000).optional() }), output: Interaction, errors: sessionService.decideInteraction.errors }),

  listCalls: route('GET /v1/call', { summary: 'Calls: who, for whom, by which rule, with what result', action: 'read', query: z.object({ sessionId: Uuid.optional(), runId: Uuid.optional(), originRunId: Uuid.optional(), agentId: AgentId.optional(), parked: z.stringbool().optional(), ...InProject, ...Paging }), output: page(CallRecord), errors: sessionService.getSession.errors }),
  getCall: route('GET /v1/call/{operationId}', { summary: 'One call', action: 'read', params: z.object({ operationId: Hex64 }), output: CallRecord, errors: toolGateway.getCall.errors }),
  resolveCall: route('POST /v1/call/{operationId}/resolve', { summary: 'Say how a parked call ended', action: 'operate', params: z.object({ operationId: Hex64 }), body: z.object({ as: z.enum(['completed', 'failed']), note: z.string().min(1).max(2_000) }), output: CallRecord, errors: toolGateway.resolveCall.errors }),
  cancelCall: route('POST /v1/call/{operationId}/cancel', { summary: 'Cancel a running call', action: 'operate', params: z.object({ operationId: Hex64 }), output: toolGateway.cancelCall.output, errors: toolGateway.getCall.errors }),
  listTools: route('GET /v1/tool', { summary: 'Tools that policies may switch; asks no server', action: 'read', query: z.object({ agentId: AgentId.optional() }), output: z.object({ tools: z.array(ToolRegistration) }) }),

  diagnose: route('POST /v1/session/{id}/diagnose', { summary: 'Run a diagnostic tool on a session: tape_info, tape_anchors', action: 'operate', params: z.object({ id: Uuid }), body: z.object({ name: z.string().min(1).max(128), arguments: JsonObject.default({}) }), output: toolGateway.askTool.output, errors: { ...toolGateway.askTool.errors, ...sessionService.getSession.errors } }),
  readArtifact: route('GET /v1/session/{id}/artifact/{digest}', { summary: 'A range of a large result of a session, as base64', action: 'read', params: z.object({ id: Uuid, digest: Hex64 }), query: z.object({ offset: z.coerce.number().int().min(0).default(0), length: z.coerce.number().int().min(1).max(256 * 1024).default(64 * 1024) }), output: toolGateway.getArtifact.output, errors: { ...toolGateway.getArtifact.errors, ...sessionService.getSession.errors } }),

  listSnapshots: route('GET /v1/snapshot', { summary: 'Which snapshots a session or agent was given', action: 'read', query: z.object({ sessionId: Uuid.optional(), agentId: AgentId.optional(), ...Paging }), output: sessionService.listSnapshots.output }),
  getSnapshot: route('GET /v1/snapshot/{fingerprint}', { summary: 'A snapshot: its canonical JSON hashes to its fingerprint', action: 'read', params: z.object({ fingerprint: Hex64 }), output: JsonObject, errors: sessionService.readSnapshot.errors }),
  diffSnapshots: route('GET /v1/snapshot/{fingerprint}/diff/{other}', { summary: 'What changed between two snapshots', action: 'read', params: z.object({ fingerprint: Hex64, other: Hex64 }), output: JsonObject, errors: sessionService.readSnapshot.errors }),
  explain: route('GET /v1/explain', { summary: 'Why a session or agent can or cannot see a tool or skill', action: 'read', query: z.object({ sessionId: Uuid.optional(), agentId: AgentId.optional(), kind: z.enum(['tool', 'skill']).default('tool'), name: z.string().min(1).max(200), as: z.string().max(200).optional() }), output: Explanation, errors: sessionService.explain.errors }),

  erasePrincipal: route('DELETE /v1/principal/{id}', { summary: 'Erase a person or application: its content, arguments, names, tokens and roles; audit keeps ids and digests, and stays verifiable', action: 'administer', params: z.object({ id: Principal.shape.id }), output: z.object({ runs: z.int(), entries: z.int(), sessions: z.int(), calls: z.int(), artifacts: z.int(), tokens: z.int(), grants: z.int(), credentials: z.int().default(0) }) }),

  listAudit: route('GET /v1/audit', { summary: 'Audit records, oldest first; application/x-ndjson exports them', action: 'audit', query: z.object({ owner: z.string().max(63).optional(), action: z.string().max(100).optional(), target: z.string().max(500).optional(), principal: z.string().max(200).optional(), since: Instant.optional(), ...Paging }), output: page(AuditRecord), answers: 'lines' }),
  verifyAudit: route('GET /v1/audit/verify', { summary: 'Walk every owner’s hash chain', action: 'audit', output: z.object({ intact: z.boolean(), owners: z.array(z.object({ owner: z.string(), records: z.int(), intact: z.boolean(), problem: z.string().nullable() })) }) }),

  listTokens: route('GET /v1/token', { summary: 'Tokens, without their secrets', action: 'administer', query: z.object(Paging), output: page(Token) }),
  createToken: route('POST /v1/token', { summary: 'A token for a principal; shown once', action: 'administer', body: z.object({ name: z.string().min(1).max(100), principal: Principal.shape.id, groups: z.array(z.string().max(200)).max(50).default([]), expiresInMs: z.int().min(60_000).max(366 * 86_400_000).optional() }), output: Token.extend({ token: z.string() }), status: 201 }),
  revokeToken: route('DELETE /v1/token/{id}', { summary: 'Revoke a token', action: 'administer', params: z.object({ id: Uuid }), output: z.object({ revoked: z.boolean() }), errors: { TOKEN_UNKNOWN: { status: 404, retry: 'never', message: 'There is no such token' } } }),
  listEdgeTokens: route('GET /v1/edge-token', { summary: 'Tokens of MCP clients, without their secrets', action: 'administer', query: z.object({ agentId: AgentId.optional(), ...Paging }), output: page(EdgeToken) }),
  createEdgeToken: route('POST /v1/edge-token', { summary: 'A token with which an MCP client uses an agent’s tools for a principal; shown once', action: 'administer', body: z.object({ name: z.string().min(1).max(100), agentId: AgentId, principal: Principal.shape.id, sessionId: Uuid.nullable().default(null), names: EdgeNames.default('qualified'), expiresInMs: z.int().min(60_000).max(366 * 86_400_000).default(30 * 86_400_000) }), output: EdgeToken.extend({ token: z.string() }), errors: { ...sessionService.getAgent.errors, ...sessionService.getSession.errors }, status: 201 }),
  revokeEdgeToken: route('DELETE /v1/edge-token/{id}', { summary: 'Revoke the token of an MCP client', action: 'administer', params: z.object({ id: Uuid }), output: z.object({ revoked: z.boolean() }), errors: { TOKEN_UNKNOWN: { status: 404, retry: 'never', message: 'There is no such token' } } }),
  listAccess: route('GET /v1/access', { summary: 'Role grants', action: 'administer', query: z.object({ ...InSet, ...Paging }), output: page(RoleGrant) }),
  grantRole: route('POST /v1/access', { summary: 'Grant a role', action: 'administer', body: z.object({ who: RoleGrant.shape.who, role: Role, projectId: ProjectId.nullable().default(null), agents: z.array(AgentId).max(1_000).nullable().default(null), onBehalfOf: z.array(z.string().max(200)).max(100).default([]) }), output: RoleGrant, status: 201 }),
  revokeRole: route('DELETE /v1/access/{id}', { summary: 'Take a role away', action: 'administer', params: z.object({ id: Uuid }), output: z.object({ revoked: z.boolean() }), errors: { GRANT_UNKNOWN: { status: 404, retry: 'never', message: 'There is no such role grant' } } }),

  listNotify: route('GET /v1/notify', { summary: 'Webhooks that are told of decisions to take and of parked calls', action: 'administer', query: z.object({ ...InProject, ...InSet, ...Paging }), output: page(NotifySink) }),
  listDeliveries: route('GET /v1/notify/{id}/delivery', { summary: 'What a webhook was told or is to be told, newest first', action: 'administer', params: z.object({ id: Uuid }), query: z.object({ status: NotifyDelivery.shape.status.optional(), ...Paging }), output: page(NotifyDelivery), errors: { NOTIFY_UNKNOWN: { status: 404, retry: 'never', message: 'There is no such webhook' } } }),

  listWorkers: route('GET /v1/worker', { summary: 'Worker credentials', action: 'read', query: z.object({ agentId: AgentId.optional(), ...Paging }), output: page(WorkerCredential) }),
  createWorker: route('POST /v1/worker', { summary: 'Credentials for a worker of an agent; the file is shown once', action: 'administer', body: z.object({ name: Slug, agentId: AgentId, pools: z.array(z.string().min(1).max(200)).min(1).max(50).default(['shared']) }), output: WorkerCredential.extend({ credentials: z.string() }), errors: { WORKER_EXISTS: { status: 409, retry: 'never', message: 'The agent has a live credential of this name; revoke it or choose another name' }, ISOLATION_OFF: { status: 409, retry: 'never', message: 'This installation holds no signing key, so it cannot make worker credentials; workers connect with the NATS credentials you give them' }, ...sessionService.ensurePool.errors }, status: 201 }),
  revokeWorker: route('DELETE /v1/worker/{id}', { summary: 'Revoke a worker’s credentials; answers once the servers know', action: 'administer', params: z.object({ id: Uuid }), output: z.object({ revoked: z.boolean() }), errors: { CREDENTIAL_UNKNOWN: adminApi.renewCredential.errors.CREDENTIAL_UNKNOWN } }),

  plan: route('POST /v1/plan', { summary: 'What applying a desired state would change', action: 'read', body: z.object({ desired: DesiredState, prune: z.boolean().default(false) }), output: Plan, errors: refusedPlan }),
  apply: route('POST /v1/apply', { summary: 'Apply a plan that still holds', action: 'administer', body: z.object({ desired: DesiredState, prune: z.boolean().default(false), digest: Hex64 }), output: Plan, errors: { ...refusedPlan, PLAN_STALE: { ...conflict, message: 'The world changed since the plan was made; plan again', data: z.object({ digest: Hex64 }) }, APPLY_FAILED: { status: 409, retry: 'never', message: 'One change failed; those before it stand, and applying again goes on from there', data: z.object({ kind: z.string(), name: z.string(), code: z.string(), message: z.string(), done: z.int() }) } } }),
};
