import { z } from 'zod';
import { rpc, signal } from './kit/contract.js';
import { Hex64, JsonObject, Uuid } from './nouns.js';
import { refusing } from './refusals.js';

/** What a server offers beside its tools: one hash for each list that was read whole; null where there is none. `resources` covers templates too. */
export const OfferHashes = z
  .object({ prompts: Hex64.nullable().default(null), resources: Hex64.nullable().default(null), skills: Hex64.nullable().default(null) })
  .meta({ id: 'OfferHashes' });
export type OfferHashes = z.output<typeof OfferHashes>;

export const OfferKind = z.enum(['prompts', 'resources', 'templates']);
export type OfferKind = z.output<typeof OfferKind>;

/** Who asks: a run, whose snapshot says which servers there are for it. */
const Scope = { runId: Uuid, sessionId: Uuid };
const ResourceUri = z.string().min(1).max(8_192);
const RequestId = Hex64.meta({ description: 'Made by whoever asks; a large result is read and a request cancelled by it' });
/** What an MCP client answered to an `input_required` result, handed back with the state that came with it. */
const InputRound = { inputResponses: JsonObject.optional(), requestState: z.string().max(256 * 1024).optional() };

/** The server's result untouched; over 256 KiB only `large` is set and the bytes are read with call.result at that instance. */
const Result = z.object({ serverId: Uuid, result: JsonObject.optional(), large: z.object({ instanceId: Hex64, requestId: Hex64, digest: Hex64, bytes: z.int() }).optional() });

const upstreamError = { status: 502, retry: 'never', message: 'The server answered with an error', data: z.object({ code: z.int(), message: z.string().max(2_000), data: z.unknown().optional() }) } as const;
const notOffered = { status: 404, retry: 'never', message: 'No server of this run offers that' } as const;
const ambiguous = { status: 409, retry: 'never', message: 'Several servers of this run offer that; name one', data: z.object({ serverIds: z.array(Uuid).max(1_000) }) } as const;
const answering = { NOT_OFFERED: notOffered, UPSTREAM_ERROR: upstreamError, ...refusing('SERVER_UNAVAILABLE', 'CALL_TIMEOUT', 'RESULT_TOO_LARGE', 'TARGET_CHANGED', 'TOOL_GONE', 'AUTHORIZATION_REQUIRED') } as const;
const scoped = { ...answering, OFFER_AMBIGUOUS: ambiguous, ...refusing('TOOL_NOT_IN_SNAPSHOT', 'TURN_ENDED', 'AGENT_DISABLED', 'SERVER_NOT_ALLOWED') } as const;

/** Prompts and resources of servers, for a run that has them in its snapshot; part of the broker’s contracts. */
export const mcpContent = {
  listOffers: rpc('ambit.rpc.mcp-broker.v1.offer.list', {
    summary: 'Prompts, resources or resource templates of the servers in a run’s snapshot, as they were read last, at most 256 KiB at a time',
    input: z.object({ ...Scope, kind: OfferKind, offset: z.int().min(0).default(0), version: Hex64.optional().meta({ description: 'Of the first page; another one answers OFFERS_MOVED' }) }),
    output: z.object({ version: Hex64, items: z.array(z.object({ serverId: Uuid, slug: z.string(), definition: JsonObject })), next: z.int().nullable() }),
    errors: { OFFERS_MOVED: { status: 409, retry: 'later', message: 'The lists changed; begin again' }, ...refusing('TOOL_NOT_IN_SNAPSHOT', 'TURN_ENDED', 'AGENT_DISABLED') }, idempotent: true,
  }),
  getPrompt: rpc('ambit.rpc.mcp-broker.v1.prompt.get', {
    summary: 'prompts/get at a server of the run’s snapshot', input: z.object({ ...Scope, requestId: RequestId, serverId: Uuid, name: z.string().min(1).max(1_000), arguments: z.record(z.string().max(1_000), z.string().max(64 * 1024)).optional(), ...InputRound }),
    output: Result, errors: scoped, timeoutMs: 60_000,
  }),
  readResource: rpc('ambit.rpc.mcp-broker.v1.resource.read', {
    summary: 'resources/read at a server of the run’s snapshot; without serverId at the one that lists the address or has a template for it',
    input: z.object({ ...Scope, requestId: RequestId, serverId: Uuid.optional(), uri: ResourceUri, ...InputRound }), output: Result, errors: scoped, timeoutMs: 60_000,
  }),
  completeArgument: rpc('ambit.rpc.mcp-broker.v1.completion.complete', {
    summary: 'completion/complete at a server of the run’s snapshot', input: z.object({ ...Scope, requestId: RequestId, serverId: Uuid, ref: JsonObject, argument: z.object({ name: z.string().max(1_000), value: z.string().max(64 * 1024) }), context: JsonObject.optional() }),
    output: Result, errors: scoped, idempotent: true, timeoutMs: 30_000,
  }),
  subscribeResource: rpc('ambit.rpc.mcp-broker.v1.resource.subscribe', {
    summary: 'Have the session told of a resource’s updates for the next `ttlMs`; again before that to go on', input: z.object({ ...Scope, serverId: Uuid.optional(), uri: ResourceUri }),
    output: z.object({ serverId: Uuid, ttlMs: z.int(), isNew: z.boolean().meta({ description: 'It was not subscribed until now: where it should have been, updates may have been missed' }) }),
    errors: { SUBSCRIPTION_LIMIT: { status: 429, retry: 'later', message: 'There are as many subscriptions at this server as there may be', data: z.object({ limit: z.int() }) }, ...scoped }, idempotent: true, timeoutMs: 30_000,
  }),
  unsubscribeResource: rpc('ambit.rpc.mcp-broker.v1.resource.unsubscribe', { summary: 'End a session’s subscription', input: z.object({ ...Scope, serverId: Uuid.optional(), uri: ResourceUri }), output: z.object({ ended: z.boolean() }), errors: scoped, idempotent: true, timeoutMs: 30_000 }),
  resourceUpdated: signal('ambit.ctl.mcp-broker.v1.resource.updated.{sessionId}', { summary: 'A resource that the session subscribed to changed', payload: z.object({ sessionId: Uuid, serverId: Uuid, uri: ResourceUri, params: JsonObject.meta({ description: 'As the server sent them' }) }) }),

  instanceRequest: rpc('ambit.rpc.mcp-broker.v1.instance.request.{instanceId}', {
    summary: 'One request beside tool calls, by the owner of the instance',
    input: z.object({ serverId: Uuid, configGeneration: z.int().min(1), bindingHash: Hex64, leaseRevision: z.int().min(1), sessionId: Uuid.optional().meta({ description: 'Who follows a resource' }), requestId: Hex64, method: z.enum(['prompts/get', 'resources/read', 'completion/complete', 'resources/subscribe', 'resources/unsubscribe', 'skills/list', 'skills/get']), params: JsonObject, timeoutMs: z.int().min(1_000).max(600_000) }),
    output: z.object({ result: JsonObject.optional(), large: z.object({ digest: Hex64, bytes: z.int() }).optional() }),
    errors: { STALE_LEASE: { status: 409, retry: 'later', message: 'Another owner serves this instance; ensure it again, nothing was sent' }, SUBSCRIPTION_LIMIT: { status: 429, retry: 'later', message: 'There are as many subscriptions at this server as there may be', data: z.object({ limit: z.int() }) }, ...answering }, timeoutMs: 600_000,
  }),
  instanceOffers: rpc('ambit.rpc.mcp-broker.v1.instance.offers.{instanceId}', {
    summary: 'What a running instance offers beside its tools, read whole, at most 256 KiB at a time',
    input: z.object({ kind: z.enum(['prompts', 'resources']), offset: z.int().min(0).default(0) }),
    output: z.object({ hash: Hex64, declared: z.object({ skills: z.boolean(), listChanged: z.boolean() }), items: z.array(z.object({ template: z.boolean(), definition: JsonObject })), next: z.int().nullable() }), errors: refusing('SERVER_UNAVAILABLE'), idempotent: true, timeoutMs: 60_000,
  }),
};
