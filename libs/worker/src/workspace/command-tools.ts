import { join, normalize } from 'node:path';
import { Fault, platformFaults, refusals } from '@ambit/contracts';
import { z } from 'zod';
import type { WorkerTool } from '../tools.js';
import { startCommand, type CommandOptions, type RunningCommand } from './command.js';
import type { Exit } from './group.js';
import { inFolder } from './text-file.js';
import type { Place } from './folders.js';
import type { Guard } from './guard.js';
import { Output } from './output.js';
import type { OpenFolder } from './open-folder.js';
import { PathProblem, toolFailed } from './path-problem.js';
import { Processes, type Process } from './processes.js';
import { skillFolder } from './skill-folder.js';
import { walk } from './walk.js';
import { decisionOf, textResult, workspaceTool, type CallInput, type Prepared, type Workspace } from './workspace.js';

export interface CommandToolsOptions {
  readonly shell: string;
  /** Below which the files of skills stand while their scripts run. */
  readonly root: string;
  readonly command: CommandOptions;
  readonly outputBytes: number;
  readonly timeoutMs: number;
  readonly processMs: number;
}

interface Starting {
  readonly output: Output;
  readonly signal: AbortSignal;
  readonly skillRoot: string | undefined;
}

const COMMAND_MAX = 64 * 1024;
const TIMEOUT_MAX_MS = 30 * 60_000;
const LOG_BYTES = 5_000;
const TAIL_BYTES = 1024 * 1024;
const WORDS_MAX = 200;

const ExecInput = z.strictObject({
  command: z.string().min(1).max(COMMAND_MAX).describe('A shell command'),
  cwd: z.string().min(1).max(4_096).default('.').describe('The folder it runs in, from the top of the workspace'),
  timeoutMs: z.int().min(100).max(TIMEOUT_MAX_MS).optional().describe('It is ended after this time'),
  background: z.boolean().default(false).describe('Answer at once; the tool `process` looks after it'),
});
const ProcessInput = z.strictObject({
  action: z.enum(['list', 'log', 'wait', 'kill']),
  id: z.string().max(20).optional().describe('Of one process: every action but list needs it'),
  offset: z.int().min(0).default(0).describe('log: the byte to begin at'),
  waitMs: z.int().min(1).max(60_000).default(10_000).describe('wait: for its end, so long at most'),
});

/** The tools that run commands. */
export class CommandTools {
  readonly #processes: Processes;

  constructor(
    private readonly workspace: Workspace,
    private readonly guard: Guard,
    private readonly options: CommandToolsOptions,
  ) {
    this.#processes = new Processes(options.processMs);
  }

  /** Ends the processes that a run left, or all of them. */
  stop(runId: string | null): Promise<void> {
    return this.#processes.stop(runId);
  }

  /** Ends the processes of a session. */
  endSession(sessionId: string): Promise<void> {
    return this.#processes.endSession(sessionId);
  }

  tools(): WorkerTool[] {
    return [
      workspaceTool(
        {
          name: 'exec',
          description:
            'Runs a shell command in a folder of the workspace and gives its exit code and output, stdout and stderr together. What it leaves running is ended with it, unless `background` is set.',
          effect: 'write',
          access: 'command',
          parallel: false,
        },
        ExecInput,
        { prepare: (input, place) => this.#prepare(input, place), run: (input, call, signal) => this.#exec(input, call, signal) },
      ),
      workspaceTool(
        {
          name: 'process',
          description: 'Looks after commands that exec started in the background in this session: list, log, wait for the end, kill.',
          effect: 'write',
          access: 'session',
          parallel: false,
        },
        ProcessInput,
        { prepare: () => Promise.resolve({}), run: (input, call, signal) => this.#process(input, call, signal) },
      ),
    ];
  }

  async #prepare({ command, cwd }: z.output<typeof ExecInput>, place: Place): Promise<Pick<Prepared, 'cwd' | 'command' | 'paths'>> {
    return { command, cwd: await this.workspace.resolve(place, cwd), paths: await this.#leadingOut(command, { cwd, place }) };
  }

  /** The words of a command that are paths out of the workspace, or through a link to another place in it. */
  async #leadingOut(command: string, at: { readonly cwd: string; readonly place: Place }): Promise<string[]> {
    const words = [...new Set(command.split(/[\s'"=;|&<>()`]+/))].filter((word) => word !== '' && word.length < 1_000).slice(0, WORDS_MAX);
    const outside: string[] = [];
    await this.workspace.folders.use(at.place, async (root) => {
      for (const word of words) {
        const path = await farFrom(root, word.startsWith('/') ? word : join(at.cwd, word));
        if (path !== undefined) outside.push(path);
      }
    });
    return outside;
  }

  async #exec(input: z.output<typeof ExecInput>, call: CallInput, signal: AbortSignal): ReturnType<WorkerTool['run']> {
    const { decided } = decisionOf(call);
    const now = await this.#prepare(input, call);
    if (now.command !== decided.command || now.cwd !== decided.cwd || now.paths.join('\0') !== decided.paths.join('\0'))
      throw new Fault('TARGET_CHANGED', refusals.TARGET_CHANGED);
    if (input.background) this.#processes.admit(call.sessionId);
    const output = new Output(input.background ? TAIL_BYTES : this.options.outputBytes, input.background ? 'end' : 'beginning');
    const skill = await skillFolder(this.options.root, call);
    try {
      return await this.#run(input, call, { output, signal, skillRoot: skill?.path });
    } finally {
      await skill?.end();
    }
  }

  async #run(input: z.output<typeof ExecInput>, call: CallInput, how: Starting): ReturnType<WorkerTool['run']> {
    const { signal } = how;
    const running = await this.#start(input, call, how);
    if (input.background) {
      // Its run may have been cancelled while it started: what looks after processes does not know it yet.
      if (signal.aborted) {
        await running.end();
        throw cancelled();
      }
      const { id } = this.#processes.add({ sessionId: call.sessionId, runId: call.runId, command: input.command, running });
      return textResult(`Started process ${id}; the tool process looks after it`, { structuredContent: { id } });
    }
    return this.#wait(running, { signal, timeoutMs: input.timeoutMs ?? this.options.timeoutMs });
  }

  #start(input: z.output<typeof ExecInput>, call: CallInput, { output, signal, skillRoot }: Starting): Promise<RunningCommand> {
    const { command } = input;
    const start = (folder: OpenFolder): Promise<RunningCommand> =>
      this.workspace.folders.use(call, (root) => {
        if (signal.aborted) throw cancelled();
        return startCommand(
          { argv: [this.options.shell, '-c', command], folder, home: root.place.path, mark: call.operationId, output, skillRoot },
          this.options.command,
          this.guard,
        );
      });
    return this.workspace.open(call, input.cwd, (spot) => inFolder(spot, start));
  }

  async #wait(running: RunningCommand, { signal, timeoutMs }: { readonly signal: AbortSignal; readonly timeoutMs: number }) {
    const startedAt = performance.now();
    let timer: NodeJS.Timeout | undefined;
    let stop: () => void = () => undefined;
    const stopped = new Promise<'timed out' | 'cancelled'>((tell) => {
      timer = setTimeout(tell, timeoutMs, 'timed out');
      stop = () => tell('cancelled');
      if (signal.aborted) stop();
      else signal.addEventListener('abort', stop, { once: true });
    });
    const end = await Promise.race([running.exited, stopped]);
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
    await running.end();
    if (end === 'cancelled') throw cancelled();
    const exit = end === 'timed out' ? undefined : end;
    const { total, lost } = running.output;
    const ms = Math.round(performance.now() - startedAt);
    const head = `${exit === undefined ? `ended after its time, ${timeoutMs} ms` : exitText(exit)}; ${ms} ms, ${total} bytes of output${lost > 0 ? `, of which the first ${total - lost} were kept` : ''}`;
    return textResult(`${head}\n${running.output.text()}`, {
      isError: exit === undefined,
      structuredContent: { exitCode: exit?.code ?? null, signal: exit?.signal ?? null, timedOut: exit === undefined, bytes: total },
    });
  }

  async #process(input: z.output<typeof ProcessInput>, { sessionId }: CallInput, signal: AbortSignal) {
    if (input.action === 'list') {
      const lines = this.#processes.of(sessionId).map((one) => `${one.id}  ${stateOf(one)}  ${one.command.slice(0, 200)}`);
      return textResult(lines.length === 0 ? '[none]' : lines.join('\n'));
    }
    if (input.id === undefined) throw toolFailed(`${input.action} needs the id of a process`);
    const found = this.#processes.find(sessionId, input.id);
    switch (input.action) {
      case 'log': {
        const { text, next } = found.running.output.from(input.offset, LOG_BYTES);
        return textResult(`${stateOf(found)}; bytes to ${next} of ${found.running.output.total}\n${text}`);
      }
      case 'wait':
        await waited(found, input.waitMs, signal);
        return textResult(stateOf(found));
      case 'kill':
        await this.#processes.end(found);
        return textResult(stateOf(found));
    }
  }
}

/** The real place of what a word names, where that is elsewhere than the word says; undefined where it is not, or nothing is there. */
async function farFrom(root: OpenFolder, path: string): Promise<string | undefined> {
  try {
    return await walk({ root }, path, ({ path: real, stats }) =>
      Promise.resolve(stats === undefined || real === normalize(path).replace(/\/$/, '') || path.startsWith('/') ? undefined : real),
    );
  } catch (error) {
    if (!(error instanceof PathProblem) || error.kind !== 'outside') return undefined;
    const absolute = path.startsWith('/') ? path : join(root.place.path, path);
    // A link may lead to what is yet to come; any other word that names nothing is no path.
    return root.volume.realpath(absolute).catch(() => (path.startsWith('/') || path.includes('..') ? undefined : absolute));
  }
}

async function waited({ running }: Process, waitMs: number, signal: AbortSignal): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((tell) => {
    timer = setTimeout(tell, waitMs);
    signal.addEventListener('abort', () => tell(), { once: true });
  });
  await Promise.race([running.exited, late]);
  clearTimeout(timer);
}

function stateOf({ exit, startedAt }: Process): string {
  return exit === undefined ? `running for ${Math.round((Date.now() - startedAt) / 1_000)} s` : exitText(exit);
}

function exitText({ code, signal }: Exit): string {
  return code === null ? `ended by ${signal ?? 'a signal'}` : `exit code ${code}`;
}

function cancelled(): Fault {
  return new Fault('CANCELLED', platformFaults.CANCELLED);
}
