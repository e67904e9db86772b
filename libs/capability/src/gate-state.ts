import type { ToolEffect } from '@ambit/contracts';
import { BadArguments, parseArguments } from './arguments.js';
import { digestOf } from './canonical.js';
import type { AuthorityLink, GateInput, TargetFacts } from './gate-input.js';
import { argumentsHash, approvedTarget, targetHash } from './operation-id.js';
import { decidePermission, type CallFacts, type Permission } from './permission.js';
import type { SnapshotTool } from './snapshot.js';
import { COMMAND_TOOL } from './reserved.js';
import { delegationEffect } from './subagents.js';

/** How long an approval lives from its decision to its dispatch. */
export const GRANT_MS = 120_000;

/** The input, and what the gates before have read out of it. A gate that is switched off leaves its neighbours working. */
export class GateState {
  private parsed: Readonly<Record<string, unknown>> | BadArguments | undefined;
  private verdict: Permission | undefined;

  constructor(readonly input: GateInput) {}

  /** The arguments, or why they are none. */
  get arguments(): Readonly<Record<string, unknown>> | BadArguments {
    return (this.parsed ??= tryParse(this.input.call.arguments));
  }

  get values(): Readonly<Record<string, unknown>> {
    return this.arguments instanceof BadArguments ? {} : this.arguments;
  }

  get permission(): Permission {
    return (this.verdict ??= permissionOf(this));
  }

  /** Whether a person approved exactly this call. */
  get grant(): 'none' | 'fits' | 'expired' {
    const { grant, call, now, run, tool } = this.input;
    if (grant === undefined || run === null || tool === null || this.arguments instanceof BadArguments) return 'none';
    const same =
      grant.operationId === call.operationId &&
      grant.targetHash === targetHash(approvedTarget(tool.target, this.input.prepared?.digest)) &&
      grant.argumentsHash === argumentsHash(this.arguments) &&
      grant.policyStamp === policyStamp(run.chain);
    if (!same) return 'none';
    return now - grant.decidedAt > GRANT_MS ? 'expired' : 'fits';
  }
}

function tryParse(text: string): Readonly<Record<string, unknown>> | BadArguments {
  try {
    return parseArguments(text);
  } catch (error) {
    if (error instanceof BadArguments) return error;
    throw error;
  }
}

/** Names the state of all policies that bear on a run: any change of any of them, and any new version, is another stamp. */
export function policyStamp(chain: readonly AuthorityLink[]): string {
  return digestOf(chain.map(({ agentId, version, enabled, policy }) => [agentId, version, enabled, policy]));
}

function permissionOf({ input, values }: GateState): Permission {
  const { run, tool, current } = input;
  const chain = (run?.chain ?? []).flatMap(({ agentId, policy }) => (policy === null ? [] : [{ agentId, policy }]));
  const readable = run !== null && chain.length === run.chain.length;
  return decidePermission({
    chain: readable ? chain : [],
    mode: run?.mode ?? 'default',
    facts: factsOf({ input, tool, current, values }),
    review: input.review,
  });
}

function effectOf({ tool, current, values, access }: Omit<FactSources, 'input'> & { readonly access: CallFacts['access'] }): ToolEffect {
  if (access === 'delegation') return delegationEffect(values);
  return tool?.effect === 'read' && current?.effect === 'read' ? 'read' : 'write';
}

interface FactSources {
  readonly input: GateInput;
  readonly tool: SnapshotTool | null;
  readonly current: TargetFacts | null;
  readonly values: Readonly<Record<string, unknown>>;
}

/** A tool that became a writing one since the snapshot counts as writing; what the snapshot says never widens it. */
function factsOf({ input, tool, current, values }: FactSources): CallFacts {
  const names = new Set([input.call.name]);
  if (tool !== null) names.add(tool.qualifiedName);
  if (tool?.target.kind === 'mcp' && current?.server) names.add(`mcp__${current.server.slug}__${tool.target.tool}`);
  const access = current?.access ?? tool?.access ?? 'other';
  const command = input.prepared?.command ?? (typeof values.command === 'string' ? values.command : null);
  // A command that the platform put together is judged as if the model had called for it itself.
  const isComposed = tool?.target.kind === 'builtin' && access === 'command';
  if (isComposed) names.add(COMMAND_TOOL);
  return {
    names: [...names],
    arguments: isComposed && command !== null ? { ...values, command } : values,
    paths: input.prepared?.paths,
    access,
    effect: effectOf({ tool, current, values, access }),
    requiresConfirmation: current?.requiresConfirmation ?? false,
    pluginVerdict: current?.pluginVerdict ?? null,
    // A file tool that nobody prepared could point anywhere.
    outsideWorkspace: input.prepared?.outsideWorkspace ?? access === 'file',
    protectedPath: input.prepared?.protectedPath ?? false,
    command,
  };
}
