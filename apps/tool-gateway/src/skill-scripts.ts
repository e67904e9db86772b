import { CLOSED_NAMES, COMMAND_TOOL, digestOf, parseArguments, type PreparedFacts } from '@ambit/capability';
import { Bus } from '@ambit/bus';
import { Fault, skillStore, worker, type Authority, type FileEntry } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';
import { AuthorityCache } from './authority.cache.js';
import type { Dispatch, Dispatcher } from './dispatch/dispatch.js';
import { WorkerDispatcher, workspaceOf } from './dispatch/worker.dispatcher.js';
import { stopped, type DispatchEnd } from './domain/call-end.js';
import type { Operation } from './domain/operation.js';
import { factsOf, unable } from './domain/prepared-facts.js';
import { scriptCommand, ScriptInput } from './domain/script-command.js';
import type { Preparedness } from './preparation.js';
import { Toolsets } from './toolsets.js';

type Skill = Authority['skills'][number];
const PART_BYTES = 256 * 1024;

/**
 * Runs scripts of skills: of the version that the run's snapshot pins, viewed in this run, and enabled by an administrator. What runs is a command of
 * the run's worker, prepared and judged as one; the files come from the skill store and are checked by the worker against their digests.
 */
@Injectable()
export class SkillScripts implements Dispatcher {
  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(AuthorityCache) private readonly authorities: AuthorityCache,
    @Inject(Toolsets) private readonly toolsets: Toolsets,
    @Inject(WorkerDispatcher) private readonly workers: WorkerDispatcher,
  ) {}

  /** What the gates have to know of it. Undefined: its arguments are none, which they say themselves. */
  async prepare(
    { call, runId }: Operation,
    { authority, workerId }: { readonly authority: Authority; readonly workerId: string | null },
  ): Promise<Preparedness | undefined> {
    const input = ScriptInput.safeParse(parseArguments(call.arguments)).data;
    if (input === undefined) return undefined;
    // What was viewed a step ago is not in an authority that was fetched before.
    const now = (await this.authorities.fetch(runId))?.authority;
    const skill = now?.openedSkills.includes(input.name) === true ? skillOf(now, input.name) : undefined;
    if (skill === undefined) return refused(unable('SKILL_NOT_ACTIVE', undefined));
    if ((await this.#files(skill, input.script)) === undefined) return refused(unable('SCRIPT_NOT_ENABLED', undefined));
    const { agentId, sessionId, pool } = authority;
    if (workerId === null || (await this.#toolset(agentId, workerId)) === undefined) return refused(unable('TOOL_GONE', undefined));
    const prepared = await this.bus.call(
      worker.prepareTool,
      { sessionId, workspaceId: workspaceOf(pool), tool: COMMAND_TOOL, arguments: commandOf(input) },
      { keys: { agentId, workerId } },
    );
    const facts = factsOf(prepared);
    return {
      // What is approved is this version's script, as it was prepared.
      facts: { ...facts, digest: digestOf([facts.digest ?? null, skill.digest, input.script]) },
      target: prepared,
      bounds: { outside: facts.outsideWorkspace, closed: [...CLOSED_NAMES] },
    };
  }

  async dispatch(dispatch: Dispatch): Promise<DispatchEnd> {
    const { authority, workerId, operation, signal } = dispatch;
    const input = ScriptInput.safeParse(dispatch.arguments).data;
    const skill = input === undefined ? undefined : skillOf(authority, input.name);
    // Asked again at the last moment: it may have been disabled, or replaced, while somebody decided.
    const files = skill === undefined || input === undefined ? undefined : await this.#files(skill, input.script);
    if (skill === undefined || input === undefined || files === undefined) return stopped('failed', 'SCRIPT_NOT_ENABLED');
    const toolsetDigest = workerId === null ? undefined : await this.#toolset(authority.agentId, workerId);
    if (workerId === null || toolsetDigest === undefined || dispatch.prepared === undefined) return stopped('failed', 'TOOL_GONE');
    try {
      await this.#stage({ skill, files, operation, workerId }, signal);
    } catch (error) {
      if (signal.aborted) return stopped('cancelled', 'CANCELLED');
      // Nothing was run.
      if (error instanceof Fault)
        return stopped('failed', 'TOOL_GONE', { message: 'The worker did not take the skill’s files; nothing was done' });
      throw error;
    }
    return this.workers.call(dispatch, {
      keys: { agentId: authority.agentId, workerId },
      toolsetDigest,
      tool: COMMAND_TOOL,
      arguments: commandOf(input),
      skill: { name: skill.name, digest: skill.digest, files: [...files] },
    });
  }

  /** The files of a skill whose script is enabled now, of this version; undefined where it is not. */
  async #files({ agentId, name, digest }: Skill, path: string): Promise<readonly FileEntry[] | undefined> {
    try {
      return (await this.bus.call(skillStore.readScript, { agentId, name, digest, path })).files;
    } catch (error) {
      if (error instanceof Fault && (error.code === 'SCRIPT_NOT_ENABLED' || error.code === 'SKILL_NOT_FOUND')) return undefined;
      throw error;
    }
  }

  /** The toolset of a live worker that can run commands. */
  async #toolset(agentId: string, workerId: string): Promise<string | undefined> {
    const digest = this.toolsets.digestOf(agentId, workerId);
    const known = digest === undefined ? undefined : await this.toolsets.toolset(agentId, digest);
    return known?.tools.some(({ name }) => name === COMMAND_TOOL) === true ? digest : undefined;
  }

  async #stage(
    what: { readonly skill: Skill; readonly files: readonly FileEntry[]; readonly operation: Operation; readonly workerId: string },
    signal: AbortSignal,
  ): Promise<void> {
    const { skill, files, operation, workerId } = what;
    const keys = { agentId: skill.agentId, workerId };
    const { operationId } = operation;
    const once = new Map(files.map((file) => [file.digest, file]));
    for (const { digest, path } of once.values()) {
      for (let offset: number | null = 0; offset !== null;) {
        const { agentId, name } = skill;
        const part: { text?: string | undefined; data?: string | undefined; next: number | null } = await this.bus.call(
          skillStore.readSkill,
          { agentId, name, digest: skill.digest, path, offset, length: PART_BYTES },
          { signal },
        );
        const data = part.data ?? Buffer.from(part.text ?? '').toString('base64');
        await this.bus.call(worker.stageFile, { operationId, digest, offset, data }, { keys, signal });
        offset = part.next;
      }
    }
  }
}

const skillOf = ({ skills }: Authority, name: string): Skill | undefined => skills.find((skill) => skill.name === name);

const commandOf = (input: ScriptInput) => ({ command: scriptCommand(input), cwd: '.', timeoutMs: input.timeoutMs });

const refused = (facts: PreparedFacts): Preparedness => ({
  facts,
  target: undefined,
  bounds: { outside: false, closed: [...CLOSED_NAMES] },
});
