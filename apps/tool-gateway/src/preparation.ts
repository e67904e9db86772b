import { BadArguments, CLOSED_NAMES, parseArguments, type GateCode, type PreparedFacts, type SnapshotTool } from '@ambit/capability';
import { Bus } from '@ambit/bus';
import { Fault, worker, type Authority, type CallBounds } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';
import { workspaceOf } from './dispatch/worker.dispatcher.js';
import type { Operation } from './domain/operation.js';
import { factsOf, unable } from './domain/prepared-facts.js';
import { SkillScripts } from './skill-scripts.js';

/** What was found out of a call before the gates, and what is handed back to the worker with it. */
export interface Preparedness {
  readonly facts: PreparedFacts;
  readonly target: unknown;
  /** How far the call may reach where the gates let it through: they judge these facts. */
  readonly bounds: CallBounds;
}

/** Asks a worker, without effect, what a file or command tool would touch, or a script that is run as a command. */
@Injectable()
export class Preparation {
  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(SkillScripts) private readonly scripts: SkillScripts,
  ) {}

  /** What the gates have to know; undefined where the worker does not say: then the call counts as one that could point anywhere. */
  async of(
    tool: SnapshotTool,
    operation: Operation,
    at: { readonly authority: Authority; readonly workerId: string | null },
  ): Promise<Preparedness | undefined> {
    const { target } = tool;
    const { authority, workerId } = at;
    try {
      if (target.kind === 'builtin') return await this.scripts.prepare(operation, at);
      if (target.kind !== 'worker' || workerId === null) return undefined;
      const input = parseArguments(operation.call.arguments);
      const prepared = await this.bus.call(
        worker.prepareTool,
        { sessionId: authority.sessionId, workspaceId: workspaceOf(authority.pool), tool: target.tool, arguments: input },
        { keys: { agentId: target.agentId, workerId } },
      );
      const facts = factsOf(prepared);
      return { facts, target: prepared, bounds: { outside: facts.outsideWorkspace, closed: [...CLOSED_NAMES] } };
    } catch (error) {
      if (error instanceof BadArguments) return undefined;
      if (!(error instanceof Fault)) throw error;
      const facts = problemOf(error);
      return facts === undefined ? undefined : { facts, target: undefined, bounds: { outside: false, closed: [...CLOSED_NAMES] } };
    }
  }
}

/** Codes with which a worker says that a call cannot be carried out, so that nobody need be asked about it. */
const PROBLEMS: readonly GateCode[] = ['BAD_ARGUMENTS', 'TOOL_GONE', 'OUTSIDE_WORKSPACE', 'TOOL_FAILED', 'INVALID_INPUT'];

function problemOf({ code, data }: Fault): PreparedFacts | undefined {
  if (code === 'UNAVAILABLE') return unable('TOOL_GONE', undefined);
  const known = PROBLEMS.find((problem) => problem === code);
  return known === undefined ? undefined : unable(known, data);
}
