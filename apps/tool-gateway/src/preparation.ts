import { BadArguments, parseArguments, type PreparedFacts, type SnapshotTool } from '@ambit/capability';
import { Bus } from '@ambit/bus';
import { Fault, worker, type Authority, type Output } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';
import { workspaceOf } from './dispatch/worker.dispatcher.js';
import type { Operation } from './domain/operation.js';

type Prepared = Output<typeof worker.prepareTool>;

/** Asks a worker, without effect, what a file or command tool would touch. */
@Injectable()
export class Preparation {
  constructor(@Inject(Bus) private readonly bus: Bus) {}

  /** What the gates have to know; undefined where the worker does not say: then the call counts as one that could point anywhere. */
  async of(
    tool: SnapshotTool,
    { call }: Operation,
    { authority, workerId }: { readonly authority: Authority; readonly workerId: string | null },
  ): Promise<{ facts: PreparedFacts; target: unknown } | undefined> {
    const { target } = tool;
    if (target.kind !== 'worker' || workerId === null) return undefined;
    try {
      const input = parseArguments(call.arguments);
      const prepared = await this.bus.call(
        worker.prepareTool,
        { sessionId: authority.sessionId, workspaceId: workspaceOf(authority.pool), tool: target.tool, arguments: input },
        { keys: { agentId: target.agentId, workerId } },
      );
      return { facts: factsOf(prepared), target: prepared };
    } catch (error) {
      if (error instanceof BadArguments || error instanceof Fault) return undefined;
      throw error;
    }
  }
}

/** Relative paths are inside the workspace; absolute ones, and those that climb, are not. */
function factsOf({ paths, cwd, argv }: Prepared): PreparedFacts {
  const all = cwd === null ? paths : [...paths, cwd];
  const segments = all.map((path) => path.split(/[\\/]/));
  return {
    outsideWorkspace: all.some((path, index) => /^([\\/~]|[A-Za-z]:)/.test(path) || segments[index]?.includes('..') === true),
    protectedPath: segments.some((parts) => parts.includes('.agent-scopes')),
    command: argv.length === 0 ? null : argv.join(' '),
  };
}
