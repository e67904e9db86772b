import { Bus } from '@ambit/bus';
import { BoundedMap, definitionHash, isObject, type SnapshotTool } from '@ambit/capability';
import { Fault, mcpBroker, type JsonObject, type Output } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';
import { stopped, type DispatchEnd, type ToolResult } from '../domain/call-end.js';
import { GatewayLease } from '../gateway.lease.js';
import { afterGrace, type Dispatch, type Dispatcher } from './dispatch.js';
import { InstanceOwners } from './instance.owners.js';
import { answeredInPages } from './result-pages.js';

const MAX_INSTANCES = 20_000;
/** What the owner's own deadline may be late by. */
const MARGIN_MS = 3_000;
/** A dead owner's lease lapses within 5 s; until then it is still named as the owner, and nobody is there. */
const RESETTLED_WITHIN_MS = 10_000;
const LOOK_AGAIN_MS = 200;
/** A broker that dies while it starts a server says nothing; another joins the start, or begins it. */
const ASKED_AGAIN_MS = 5_000;

type Instance = Output<typeof mcpBroker.ensureInstance>;
type Executed = Output<typeof mcpBroker.executeCall>;

/** Codes with which the owner of a server says that nothing was sent to it. */
const NOTHING_DONE: ReadonlySet<string> = new Set([
  'TARGET_CHANGED',
  'CATALOG_DRIFT',
  'SERVER_UNAVAILABLE',
  'TOOL_GONE',
  'AUTHORIZATION_REQUIRED',
  'STALE_LEASE',
  'UNAVAILABLE',
  'INVALID_INPUT',
]);

/** Codes with which a broker says why it cannot make a server ready. */
const SAYS_WHY: ReadonlySet<string> = new Set(['TARGET_CHANGED', 'TOOL_GONE', 'SERVER_UNAVAILABLE', 'AUTHORIZATION_REQUIRED']);

/** Hashes of pinned definitions, kept as long as the snapshot that they stand in. */
const definitions = new WeakMap<SnapshotTool, string>();

/** Sends calls straight to the owner of a server's instance, which is asked for once and remembered. */
@Injectable()
export class McpDispatcher implements Dispatcher {
  readonly #instances = new BoundedMap<string, Promise<Instance>>(MAX_INSTANCES);

  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(GatewayLease) private readonly lease: GatewayLease,
    @Inject(InstanceOwners) private readonly owners: InstanceOwners,
  ) {}

  /** Where nothing was delivered, or its receiver is not the owner any more, the owner is looked for again, and the call sent to it under the same claim. */
  async dispatch(dispatch: Dispatch): Promise<DispatchEnd> {
    const until = performance.now() + Math.min(RESETTLED_WITHIN_MS, dispatch.remainingMs);
    const mayTryAgain = (error: unknown): boolean => isElsewhere(error) && performance.now() < until;
    for (let tries = 0; ; tries++) {
      // The second try costs nothing; only who is not there then is waited for.
      if (tries > 1) await pause(LOOK_AGAIN_MS);
      if (dispatch.signal.aborted) return stopped('cancelled', 'CANCELLED');
      let instance: Instance;
      try {
        instance = await this.#instance(dispatch, tries > 0);
      } catch (error) {
        if (mayTryAgain(error)) continue;
        return unsent(dispatch, error);
      }
      if (dispatch.signal.aborted) return stopped('cancelled', 'CANCELLED');
      try {
        const executed = await this.#send(dispatch, instance);
        return await this.#answer(executed, instance, dispatch);
      } catch (error) {
        if (mayTryAgain(error)) continue;
        return sent(dispatch, error);
      }
    }
  }

  #instance({ tool, authority, signal }: Dispatch, isFresh: boolean): Promise<Instance> {
    const { target } = tool;
    if (target.kind !== 'mcp') throw new TypeError('not the tool of an MCP server');
    const key = `${target.serverId} ${target.configGeneration} ${authority.agentId} ${authority.sessionId} ${authority.principal.id}`;
    const known = isFresh ? undefined : this.#instances.get(key);
    if (known !== undefined) return known;
    const input = {
      configGeneration: target.configGeneration,
      bindingHash: target.bindingHash,
      agentId: authority.agentId,
      sessionId: authority.sessionId,
      principalId: authority.principal.id,
    };
    const asking = this.bus.call(mcpBroker.ensureInstance, input, { keys: { serverId: target.serverId }, signal, eachMs: ASKED_AGAIN_MS });
    this.#instances.set(key, asking);
    asking.catch(() => this.#instances.delete(key));
    return asking;
  }

  async #send(dispatch: Dispatch, instance: Instance): Promise<Executed> {
    const { tool, operation, authority, signal, remainingMs } = dispatch;
    const { target } = tool;
    if (target.kind !== 'mcp') throw new TypeError('not the tool of an MCP server');
    const callTimeoutMs = Math.max(1_000, Math.min(instance.callTimeoutMs, Math.floor(remainingMs)));
    const { instanceId, leaseRevision, onProgress } = instance;
    const grace = afterGrace(signal, () =>
      this.bus.signal(
        mcpBroker.cancelCall,
        { operationId: operation.operationId, reason: 'the call was cancelled' },
        { keys: { instanceId } },
      ),
    );
    const owner = this.owners.follow(instance, grace.cut);
    try {
      return await this.bus.call(
        mcpBroker.executeCall,
        {
          serverId: target.serverId,
          configGeneration: target.configGeneration,
          bindingHash: target.bindingHash,
          leaseRevision,
          operationId: operation.operationId,
          gatewayId: this.lease.id,
          tool: target.tool,
          arguments: { ...dispatch.arguments },
          callTimeoutMs,
          onProgress,
          sessionId: authority.sessionId,
          ...(instance.compares === true ? { definition: definitionOf(tool, target.tool) } : {}),
        },
        {
          keys: { instanceId },
          timeoutMs: onProgress === 'extend' ? Math.max(callTimeoutMs, remainingMs) + MARGIN_MS : callTimeoutMs + MARGIN_MS,
          within: {
            traceparent: operation.traceparent,
            principal: authority.principal,
            actor: undefined,
            via: undefined,
            signal: grace.signal,
          },
        },
      );
    } finally {
      owner.end();
      grace.end();
    }
  }

  async #answer(executed: Executed, instance: Instance, { operation }: Dispatch): Promise<DispatchEnd> {
    if (executed.large === undefined) return { kind: 'answered', result: toolResult(executed.result ?? {}) };
    return answeredInPages(
      executed.large,
      (offset) =>
        this.bus.call(mcpBroker.resultPage, { operationId: operation.operationId, offset }, { keys: { instanceId: instance.instanceId } }),
      (value) => toolResult(isObject(value) ? value : {}),
    );
  }
}

/** The definition of a tool that its snapshot pins; made once. */
function definitionOf(tool: SnapshotTool, name: string): string {
  const known = definitions.get(tool);
  if (known !== undefined) return known;
  const hash = definitionHash({ name, inputSchema: tool.inputSchema, outputSchema: tool.outputSchema });
  definitions.set(tool, hash);
  return hash;
}

/** Nobody was there, or nobody who may do it: nothing was done. */
function isElsewhere(error: unknown): boolean {
  return error instanceof Fault && (error.code === 'UNAVAILABLE' || error.code === 'STALE_LEASE');
}

/** Reads a `tools/call` result: its blocks, its data, and whether the tool says it failed. */
function toolResult(result: JsonObject): ToolResult {
  const content = Array.isArray(result['content']) ? result['content'].filter(isBlock) : [];
  const { structuredContent } = result;
  return { content, isError: result['isError'] === true, ...(structuredContent === undefined ? {} : { structuredContent }) };
}

function isBlock(block: unknown): block is { type: string } {
  return isObject(block) && typeof block['type'] === 'string' && block['type'].length <= 100;
}

/** The server takes everybody's own credentials, and this call's principal has none: it is asked, once. */
function isForPrincipal({ granted }: Dispatch, error: unknown): error is Fault {
  if (granted || !(error instanceof Fault) || error.code !== 'AUTHORIZATION_REQUIRED') return false;
  return isObject(error.data) && error.data['credentials'] === 'user';
}

/** Why the owner could not be found: nothing was sent. */
function unsent(dispatch: Dispatch, error: unknown): DispatchEnd {
  if (dispatch.signal.aborted) return stopped('cancelled', 'CANCELLED');
  if (isForPrincipal(dispatch, error)) return { kind: 'asked', reason: error.message, signIn: true };
  if (error instanceof Fault && SAYS_WHY.has(error.code))
    return stopped('failed', error.code, { data: error.data, message: error.message });
  return stopped('failed', 'SERVER_UNAVAILABLE', { data: { reason: 'no broker could make the server ready' } });
}

/** How a call ended that was sent and has no result: only what the owner says is certain. */
function sent(dispatch: Dispatch, error: unknown): DispatchEnd {
  const { signal } = dispatch;
  if (isForPrincipal(dispatch, error)) return { kind: 'asked', reason: error.message, signIn: true };
  if (!(error instanceof Fault))
    return stopped(
      'indeterminate',
      'INDETERMINATE',
      signal.aborted ? { message: 'The call was told to stop and its owner did not say how it ended; a person has to look' } : {},
    );
  if (error.code === 'CANCELLED') return stopped('cancelled', 'CANCELLED');
  if (error.code === 'STALE_LEASE' || error.code === 'UNAVAILABLE')
    return stopped('failed', 'SERVER_UNAVAILABLE', { data: { reason: 'the server’s owner is not to be found' } });
  if (
    NOTHING_DONE.has(error.code) ||
    error.code === 'CALL_TIMEOUT' ||
    error.code === 'RESULT_TOO_LARGE' ||
    error.code === 'TOO_LARGE' ||
    error.code === 'TOOL_FAILED'
  )
    return stopped('failed', error.code, { data: error.data, message: error.message });
  // Whoever looks into a parked call begins with what its owner knew.
  return stopped('indeterminate', 'INDETERMINATE', error.code === 'INDETERMINATE' ? { message: error.message } : {});
}
