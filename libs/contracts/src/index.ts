export { Fault, type FaultBody, type FaultDef, type FaultMap, type Retry } from './kit/fault.js';
export { event, fault, job, rpc, signal } from './kit/contract.js';
export type { Audience, Contract, EventContract, Input, JobContract, Keys, KeysOf, Output, Parsed, Payload, Returns, Rpc, SignalContract } from './kit/contract.js';
export { eventsAbout, keysOf, pattern, subject } from './kit/subject.js';
export { fromToken, toToken } from './kit/token.js';
export { jsonSchemaOf, safeParse, type Schema } from './kit/schema.js';
export { HEADER } from './kit/headers.js';
export { eventMessage, jobMessage, type StoredMessage, type StoredOptions } from './kit/stored-message.js';
export { httpFaults, platformFault, platformFaults, type PlatformCode } from './faults.js';
export { refusals, refusing, type RefusalCode } from './refusals.js';
export { buckets, MAX_PAYLOAD_BYTES, MINIMUM_NATS_SERVER, objectStores, streams, type BucketDecl, type ObjectStoreDecl, type StreamDecl } from './streams.js';
export {
  Abort, Claim, epochKey, INLINE_RESULT_BYTES, journalSubject, leaseKey, Mapping, mappingKey, Outcome, OutcomeStatus, RunState, RunStatus, SnapshotHead, snapshotKey,
} from './journal.js';
export { AUDIT_TOGETHER, AuditAppended, auditEvent, AuditRecord } from './audit.js';
export {
  AgentId, AgentPreset, Condition, demands, Exposure, FaultBodySchema, Hex64, Instant, JsonObject, Limits, MatchRule, matchRules, NameList, Owner, page, PageInput, PermissionMode, Permit, Policy, Principal, ProjectId,
  RetentionClass, Rule, ServerRequests, SetName, Slug, SubagentSlot, Target, ToolDefinition, ToolEffect, Uuid, Version, Via,
} from './nouns.js';
export { adminApi, DeliveryStatus, EdgeNames, EdgeToken, NOTIFIED_EVENTS, NotifiedEvent, Notify, NotifyDelivery, NotifySink, Role, RoleGrant, Token, WorkerCredential } from './admin-api.js';
export { Authorization, AuthorizationState, Credential, CredentialsOf, CredentialSubject, SecretRef, ServerAuthorization } from './authorization.js';
export { Instances, mcpBroker, Secret, Server, ServerHead, ServerSpec, ServerState, Timeouts, ToolPolicy, Transport } from './mcp-broker.js';
export { OfferHashes, OfferKind } from './mcp-content.js';
export { mcpEdge } from './mcp-edge.js';
export { ServerSkill, Switch, SwitchName } from './mcp-skills.js';
export { mcpRunner, ResolvedServer } from './mcp-runner.js';
export { permitChecker, PermitSubject } from './permit-checker.js';
export { Plugin, PluginId, pluginRegistry, PluginState, Publisher, SourceFormat } from './plugin-registry.js';
export { Review, reviewer, ReviewRequest, Risk } from './reviewer.js';
export {
  Agent, AgentAdjustment, AgentKind, AgentSpec, Answer, AskedBack, Authority, CallResult, CallStatus, ContentBlock, Explanation, IntendedCall, Interaction, InteractionKind, InteractionStatus, LOADED_TOOLS_MAX, MessageIn, Project, Question, Reason, Run, RunJob,
  runFaults, RunRef, Session, sessionService, TapeEntry, TapeMessage, TapeScope, Usage,
} from './session-service.js';
export { DELEGATION, DelegatedTask, Delegation, DelegationMode, DelegationStatus, DelegationTask, TaskStatus } from './delegation.js';
export { FileEntry, SkillName } from './skill-file.js';
export { ImportCandidate, ImportChoice, ImportFailure, ImportFormat, importPlaces, ImportResult, ImportSource, ImportStrategy } from './skill-import.js';
export { SkillDraft } from './skill-draft.js';
export { EffectiveSkill, ScriptPath, Skill, SkillFacts, skillStore } from './skill-store.js';
export { CallLog, CallRecord, CALLS_ENDED_TOGETHER, DeferredCall, EndedCall, toolGateway, ToolAccess, CallBounds, PreparedTarget, ToolRegistration, Toolset, worker } from './tool-gateway.js';
export { services, type ServiceName, type ServiceUse } from './services.js';
export { runConsumer, serviceInboxPrefix, WORKER_SERVICES, WORKER_SIGNALS, workerInboxPrefix, workerSubjectsOf } from './wall.js';
export { AgentDocument, DesiredState, httpApi, Plan, PlannedChange, RunEvent, WrittenAgent } from './http-api.js';
export type { Action, HttpRoute, Method, RouteInput, RouteOutput } from './kit/http-route.js';
