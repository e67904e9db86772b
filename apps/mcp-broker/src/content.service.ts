import { Bus, type Call } from '@ambit/bus';
import { Fault, fault, mcpBroker, type Input, type JsonObject, type Output, type Parsed, type Returns } from '@ambit/contracts';
import { sha256Hex } from '@ambit/capability';
import { Inject, Injectable } from '@nestjs/common';
import { setTimeout as wait } from 'node:timers/promises';
import { serversOf } from './domain/offered.js';
import { InstanceService } from './instance.service.js';
import { OfferService } from './offer.service.js';
import { RunScopes, type RunScope } from './run-scope.service.js';
import { ServerRepository } from './server.repository.js';

type Method = Input<typeof mcpBroker.instanceRequest>['method'];
type Who = { readonly runId: string; readonly sessionId: string };

/** What the owner's own deadline may be late by. */
const MARGIN_MS = 1_000;
const SUBSCRIBED_MS = 120_000;
/** A dead owner's lease lapses within 5 s; until then it is still named as the owner, and nobody is there. */
const RESETTLED_WITHIN_MS = 10_000;
const LOOK_AGAIN_MS = 200;

/** Requests beside tool calls, for a run that has the server in its snapshot: checked here, sent to whoever owns the instance. */
@Injectable()
export class ContentService {
  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(RunScopes) private readonly scopes: RunScopes,
    @Inject(OfferService) private readonly offers: OfferService,
    @Inject(ServerRepository) private readonly servers: ServerRepository,
    @Inject(InstanceService) private readonly instances: InstanceService,
  ) {}

  async prompt(input: Parsed<typeof mcpBroker.getPrompt>, call: Call): Promise<Returns<typeof mcpBroker.getPrompt>> {
    const { name, arguments: values, serverId, requestId } = input;
    const params = { name, ...(values === undefined ? {} : { arguments: values }), ...roundOf(input) };
    return this.send(await this.scopes.of(input), { serverId, requestId, method: 'prompts/get', params }, call);
  }

  async read(input: Parsed<typeof mcpBroker.readResource>, call: Call): Promise<Returns<typeof mcpBroker.readResource>> {
    const { uri, requestId } = input;
    const scope = await this.scopes.of(input);
    const serverId = await this.serverOf(scope, input);
    return this.send(scope, { serverId, requestId, method: 'resources/read', params: { uri, ...roundOf(input) } }, call);
  }

  async complete(input: Parsed<typeof mcpBroker.completeArgument>, call: Call): Promise<Returns<typeof mcpBroker.completeArgument>> {
    const { ref, argument, context, serverId, requestId } = input;
    const params = { ref, argument, ...(context === undefined ? {} : { context }) };
    return this.send(await this.scopes.of(input), { serverId, requestId, method: 'completion/complete', params }, call);
  }

  async subscribe(input: Parsed<typeof mcpBroker.subscribeResource>, call: Call): Promise<Returns<typeof mcpBroker.subscribeResource>> {
    const { serverId, result } = await this.follow(input, { method: 'resources/subscribe', call });
    return { serverId, ttlMs: SUBSCRIBED_MS, isNew: result?.['isNew'] === true };
  }

  async unsubscribe(
    input: Parsed<typeof mcpBroker.unsubscribeResource>,
    call: Call,
  ): Promise<Returns<typeof mcpBroker.unsubscribeResource>> {
    const { result } = await this.follow(input, { method: 'resources/unsubscribe', call });
    return { ended: result?.['ended'] === true };
  }

  private async follow(
    input: Who & { readonly uri: string; readonly serverId?: string | undefined },
    how: { readonly method: Method; readonly call: Call },
  ): Promise<Output<typeof mcpBroker.readResource>> {
    const scope = await this.scopes.of(input);
    const serverId = await this.serverOf(scope, input);
    const requestId = sha256Hex(`${how.method} ${input.sessionId} ${input.uri} ${how.call.traceId} ${performance.now()}`);
    return this.send(scope, { serverId, requestId, method: how.method, params: { uri: input.uri } }, how.call);
  }

  private async serverOf(
    scope: RunScope,
    { serverId, uri }: { readonly serverId?: string | undefined; readonly uri: string },
  ): Promise<string> {
    if (serverId !== undefined) return serverId;
    const serverIds = serversOf(uri, await this.offers.of(scope, 'resources'));
    const [only, ...others] = serverIds;
    if (only === undefined) throw fault(mcpBroker.readResource, 'NOT_OFFERED');
    if (others.length > 0) throw fault(mcpBroker.readResource, 'OFFER_AMBIGUOUS', { serverIds });
    return only;
  }

  /** Where nothing was delivered, or its receiver is not the owner any more, the owner is looked for again. */
  async send(
    scope: RunScope,
    request: { readonly serverId: string; readonly requestId: string; readonly method: Method; readonly params: JsonObject },
    call: Call,
  ): Promise<Output<typeof mcpBroker.readResource>> {
    const { serverId, requestId } = request;
    const pin = await this.pinOf(scope, serverId);
    const { agentId, sessionId, principal } = scope.authority;
    const until = performance.now() + Math.min(RESETTLED_WITHIN_MS, call.remainingMs());
    for (let tries = 0; ; tries++) {
      if (tries > 1) await wait(LOOK_AGAIN_MS);
      const { instanceId, leaseRevision, callTimeoutMs } = await this.instances.ensure(serverId, {
        ...pin,
        agentId,
        sessionId,
        principalId: principal.id,
      });
      const timeoutMs = Math.max(1_000, Math.min(callTimeoutMs, Math.floor(call.remainingMs()) - MARGIN_MS));
      const cancel = (): void =>
        this.bus.signal(mcpBroker.cancelCall, { operationId: requestId, reason: 'whoever asked waits no more' }, { keys: { instanceId } });
      call.signal.addEventListener('abort', cancel, { once: true });
      try {
        const { method, params } = request;
        const { result, large } = await this.bus.call(
          mcpBroker.instanceRequest,
          { serverId, ...pin, leaseRevision, sessionId, requestId, method, params, timeoutMs },
          { keys: { instanceId }, timeoutMs: timeoutMs + MARGIN_MS },
        );
        return {
          serverId,
          ...(result === undefined ? {} : { result }),
          ...(large === undefined ? {} : { large: { instanceId, requestId, ...large } }),
        };
      } catch (error) {
        const isElsewhere = error instanceof Fault && (error.code === 'UNAVAILABLE' || error.code === 'STALE_LEASE');
        if (!isElsewhere) throw error;
        if (performance.now() > until)
          throw fault(mcpBroker.readResource, 'SERVER_UNAVAILABLE', { reason: 'the server’s owner is not to be found' });
      } finally {
        call.signal.removeEventListener('abort', cancel);
      }
    }
  }

  /** The target as the snapshot has it. A server that is not in it is answered like one that does not exist. */
  private async pinOf(
    { servers, refused }: RunScope,
    serverId: string,
  ): Promise<{ readonly configGeneration: number; readonly bindingHash: string }> {
    const code = refused.get(serverId);
    if (code !== undefined) throw fault(mcpBroker.readResource, code);
    const server = servers.find((one) => one.serverId === serverId);
    if (server === undefined) throw fault(mcpBroker.readResource, 'TOOL_NOT_IN_SNAPSHOT');
    const row = await this.servers.find({ id: serverId });
    if (row === null || !row.enabled) throw fault(mcpBroker.readResource, 'TOOL_GONE');
    if (row.configGeneration !== server.configGeneration) throw fault(mcpBroker.readResource, 'TARGET_CHANGED');
    return { configGeneration: row.configGeneration, bindingHash: row.bindingHash };
  }
}

/** What an MCP client answered in an earlier round, as its server wants it back. */
function roundOf({
  inputResponses,
  requestState,
}: {
  readonly inputResponses?: JsonObject | undefined;
  readonly requestState?: string | undefined;
}): JsonObject {
  return { ...(inputResponses === undefined ? {} : { inputResponses }), ...(requestState === undefined ? {} : { requestState }) };
}
