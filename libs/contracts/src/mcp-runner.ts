import { z } from 'zod';
import { rpc, signal } from './kit/contract.js';
import { OfferHashes } from './mcp-content.js';
import { Hex64, JsonObject, ToolDefinition, Uuid } from './nouns.js';
import { refusing } from './refusals.js';

/** One stdio server's resolved configuration, handed over by the broker; holds secrets, so it is never logged. */
export const ResolvedServer = z.object({
  serverId: Uuid,
  slug: z.string().max(63),
  configGeneration: z.int().min(1),
  bindingHash: Hex64,
  command: z.string().min(1).max(1_024),
  args: z.array(z.string().max(8_192)).max(256),
  env: z.record(z.string().max(128), z.string().max(64 * 1024)),
  package: z.object({ pluginId: z.string().max(64), digest: Hex64 }).nullable(),
  startTimeoutMs: z.int().min(1_000).max(300_000),
  idleStopMs: z.int().min(1_000),
  /** It is told that it may ask for completions. */
  sampling: z.boolean().default(false),
  memoryBytes: z.int().nullable(),
  /** The protocol era found last time, with its date, so that no probe is needed. */
  era: z.object({ kind: z.enum(['legacy', 'modern']), at: z.iso.datetime(), discover: z.unknown().optional() }).nullable(),
});
export type ResolvedServer = z.output<typeof ResolvedServer>;

export const mcpRunner = {
  startInstance: rpc('ambit.rpc.mcp-runner.v1.instance.start', {
    summary: 'Take the lease of an instance and start its child; when another runner holds it, say which',
    input: z.object({ instanceId: Hex64, server: ResolvedServer }),
    output: z.object({ runnerId: Uuid, leaseRevision: z.int().min(1), runsAs: z.string().max(200), protocol: z.string().max(20), era: ResolvedServer.shape.era, serverInfo: JsonObject, capabilities: JsonObject, catalogHash: Hex64, tools: z.int().min(0), offers: OfferHashes.optional(), dropped: z.array(z.object({ name: z.string(), reason: z.string() })).max(200) }),
    errors: refusing('SERVER_UNAVAILABLE'), idempotent: true, timeoutMs: 60_000,
  }),
  instanceTools: rpc('ambit.rpc.mcp-runner.v1.instance.tools.{instanceId}', { summary: 'The tools of a running instance, at most 256 KiB at a time', input: z.object({ offset: z.int().min(0).default(0) }), output: z.object({ catalogHash: Hex64, tools: z.array(ToolDefinition), next: z.int().nullable() }), errors: refusing('SERVER_UNAVAILABLE'), idempotent: true }),
  stopInstance: rpc('ambit.rpc.mcp-runner.v1.instance.stop.{instanceId}', { summary: 'Abort its calls, stop its process group, give the lease back', input: z.object({ reason: z.string().max(200) }), output: z.object({ stopped: z.boolean() }), idempotent: true, timeoutMs: 15_000 }),

  instanceChanged: signal('ambit.ctl.mcp-runner.v1.instance.changed.{serverId}', { summary: 'A hint: the instance’s tools changed, or it ended', payload: z.object({ instanceId: Hex64, configGeneration: z.int(), kind: z.enum(['tools', 'prompts', 'resources', 'disconnected', 'ended']), catalogHash: Hex64.nullable(), reason: z.string().max(1_000).nullable() }) }),
};
