import { z } from 'zod';
import { auditEvent } from './audit.js';
import { event, rpc } from './kit/contract.js';
import { SecretRef } from './authorization.js';
import { AgentId, Hex64, Instant, Principal, ProjectId, SetName, Uuid, Version } from './nouns.js';

export const Role = z.enum(['admin', 'operator', 'approver', 'viewer', 'auditor', 'client']);
export type Role = z.infer<typeof Role>;

export const RoleGrant = z
  .object({
    id: Uuid,
    who: z.string().max(200).regex(/^(user|app|worker|group):[^\s]+$/, 'user:<id>, app:<id>, worker:<id> or group:<id>'),
    role: Role,
    projectId: ProjectId.nullable(),
    agents: z.array(AgentId).max(1_000).nullable(),
    onBehalfOf: z.array(z.string().max(200)).max(100),
    set: SetName,
    createdAt: Instant,
  })
  .meta({ id: 'RoleGrant' });
export type RoleGrant = z.output<typeof RoleGrant>;

/** What is known of a token; the token itself is shown once and kept as a hash. */
export const Token = z.object({ id: Uuid, name: z.string().max(100), principal: z.string().max(200), groups: z.array(z.string()), expiresAt: Instant.nullable(), revokedAt: Instant.nullable(), lastUsedAt: Instant.nullable(), createdAt: Instant }).meta({ id: 'Token' });
export type Token = z.output<typeof Token>;

/** Which names an MCP client sees: `qualified` as in the snapshot, `plain` as the servers say them where no other tool is called so. */
export const EdgeNames = z.enum(['qualified', 'plain']);
export type EdgeNames = z.output<typeof EdgeNames>;

/** What is known of a token that opens the edge for MCP clients; the token itself is shown once and kept as a hash. */
export const EdgeToken = z
  .object({
    id: Uuid,
    name: z.string().max(100),
    agentId: AgentId,
    projectId: ProjectId,
    principal: Principal.shape.id,
    /** The session that it opens; null: one of its own. */
    sessionId: Uuid.nullable(),
    /** The worker's run that it reaches, and no other. */
    runId: Uuid.nullable(),
    names: EdgeNames,
    expiresAt: Instant,
    revokedAt: Instant.nullable(),
    lastUsedAt: Instant.nullable(),
    createdAt: Instant,
  })
  .meta({ id: 'EdgeToken' });
export type EdgeToken = z.output<typeof EdgeToken>;

export const WorkerCredential = z
  .object({ id: Uuid, name: z.string().max(63), agentId: AgentId, pools: z.array(z.string().max(200)).min(1).max(50), publicKey: z.string().max(60), issuedAt: Instant, expiresAt: Instant, revokedAt: Instant.nullable() })
  .meta({ id: 'WorkerCredential' });
export type WorkerCredential = z.output<typeof WorkerCredential>;

/** What people may have told to them: each is an event that some owner raises. */
export const NOTIFIED_EVENTS = ['interaction.requested', 'call.parked'] as const;
export const NotifiedEvent = z.enum(NOTIFIED_EVENTS, { error: `no such event can be told; write ${NOTIFIED_EVENTS.join(' or ')}` });
export type NotifiedEvent = z.output<typeof NotifiedEvent>;

/** A place outside that is told of events, by signed POST requests after the convention of Standard Webhooks. */
export const Notify = z
  .strictObject({
    events: z.array(NotifiedEvent).min(1).max(NOTIFIED_EVENTS.length),
    webhook: z.strictObject({
      url: z.url({ error: 'an address that begins with http:// or https://', protocol: /^https?$/ }).max(2_048),
      sign: z.strictObject(SecretRef.shape, { error: '{ secret: <name> }' }),
    }),
  })
  .meta({ id: 'Notify' });
export type Notify = z.output<typeof Notify>;

export const NotifySink = Notify.extend({ id: Uuid, projectId: ProjectId, set: SetName, version: Version, createdAt: Instant, updatedAt: Instant }).meta({ id: 'NotifySink' });
export type NotifySink = z.output<typeof NotifySink>;

export const DeliveryStatus = z.enum(['pending', 'delivered', 'obsolete', 'failed']);
export type DeliveryStatus = z.output<typeof DeliveryStatus>;
/** One event for one sink. `obsolete`: it was decided or resolved before it could be delivered. */
export const NotifyDelivery = z
  .object({
    id: z.int().min(1),
    /** What the receiver gets as `webhook-id`, the same with every attempt. */
    eventId: z.string().max(200),
    event: NotifiedEvent,
    /** The interaction or operation that it is about. */
    about: z.string().max(64),
    status: DeliveryStatus,
    attempts: z.int().min(0),
    lastError: z.string().max(500).nullable(),
    createdAt: Instant,
    /** When it is tried next; null once it ended. */
    nextAt: Instant.nullable(),
    endedAt: Instant.nullable(),
  })
  .meta({ id: 'NotifyDelivery' });
export type NotifyDelivery = z.output<typeof NotifyDelivery>;

export const adminApi = {
  renewCredential: rpc('ambit.rpc.admin-api.v1.credential.renew.{agentId}', {
    summary: 'A fresh user JWT for the worker’s own key, an hour at a time', audience: 'worker',
    input: z.object({ publicKey: z.string().regex(/^U[A-Z2-7]{55}$/), proof: z.string().max(500).meta({ description: 'base64url signature over `<publicKey>.<at>` by the worker’s key' }), at: Instant }),
    output: z.object({ jwt: z.string(), expiresAt: Instant }),
    errors: { CREDENTIAL_UNKNOWN: { status: 404, retry: 'never', message: 'No live credential of this agent has that key; create one' } },
  }),
  resolveEdgeToken: rpc('ambit.rpc.admin-api.v1.edge-token.resolve', {
    summary: 'What a token that an MCP client sent opens, by its hash; one that is unknown, expired or revoked opens nothing',
    input: z.object({ hash: Hex64 }), output: EdgeToken,
    errors: { EDGE_TOKEN_UNKNOWN: { status: 401, retry: 'never', message: 'The token is unknown, expired or revoked' } }, idempotent: true,
  }),
  issueRunToken: rpc('ambit.rpc.admin-api.v1.edge-token.issue', {
    summary: 'A token with which the program behind a worker’s run uses that run’s tools, and no other’s; worth nothing once the run has ended',
    input: z.object({ agentId: AgentId, projectId: ProjectId, principal: Principal.shape.id, runId: Uuid }),
    output: z.object({ token: z.string(), expiresAt: Instant }), errors: {},
  }),
  workerRevoked: event('ambit.evt.admin-api.v1.worker.revoked.{agentId}', { summary: 'A worker credential was revoked', payload: z.object({ agentId: AgentId, name: z.string(), at: Instant }) }),
  auditAppended: auditEvent('admin-api'),
};
