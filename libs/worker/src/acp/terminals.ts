import {
  RequestError,
  type CreateTerminalRequest,
  type CreateTerminalResponse,
  type TerminalExitStatus,
  type TerminalOutputResponse,
  type WaitForTerminalExitResponse,
} from '@agentclientprotocol/sdk';
import { randomBytes } from 'node:crypto';
import { startCommand, type CommandOptions, type RunningCommand } from '../workspace/command.js';
import type { Folders, Place } from '../workspace/folders.js';
import type { Exit } from '../workspace/group.js';
import type { Guard } from '../workspace/guard.js';
import { Output } from '../workspace/output.js';
import { inFolder } from '../workspace/text-file.js';
import { reach } from './place.js';

const OUTPUT_BYTES = 1024 * 1024;
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024;
const AT_ONCE = 16;
const ARGUMENTS_MAX = 1_000;
const VARIABLES_MAX = 64;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;

interface Terminal {
  readonly sessionId: string;
  readonly running: RunningCommand;
  readonly bytes: number;
  exit: Exit | undefined;
}

/** Commands that an agent runs in its workspace; each belongs to its session and ends with it at the latest. */
export class Terminals {
  readonly #known = new Map<string, Terminal>();
  #starting = 0;

  constructor(
    private readonly at: { readonly folders: Folders; readonly place: Place },
    private readonly command: CommandOptions,
    private readonly guard: Guard,
  ) {}

  /** Starts a command by its arguments: no shell reads them. */
  async create({ sessionId, command, args = [], env = [], cwd, outputByteLimit }: CreateTerminalRequest): Promise<CreateTerminalResponse> {
    if (this.#known.size + this.#starting >= AT_ONCE)
      throw RequestError.invalidParams(undefined, `${AT_ONCE} terminals are open; release some first`);
    if (args.length > ARGUMENTS_MAX || env.length > VARIABLES_MAX)
      throw RequestError.invalidParams(undefined, `a command has at most ${ARGUMENTS_MAX} arguments and ${VARIABLES_MAX} variables`);
    const wrong = env.find(({ name }) => !VARIABLE.test(name) || name.startsWith('AMBIT_'));
    if (wrong !== undefined) throw RequestError.invalidParams({ name: wrong.name.slice(0, 200) }, 'this variable cannot be set');
    const bytes = Math.min(outputByteLimit ?? OUTPUT_BYTES, OUTPUT_BYTES_MAX);
    const terminalId = randomBytes(16).toString('hex');
    this.#starting += 1;
    try {
      const running = await this.#start({ argv: [command, ...args], cwd, mark: terminalId, bytes }, env);
      const terminal: Terminal = { sessionId, running, bytes, exit: undefined };
      this.#known.set(terminalId, terminal);
      void running.exited.then((exit) => (terminal.exit = exit));
      return { terminalId };
    } finally {
      this.#starting -= 1;
    }
  }

  output(request: { readonly sessionId: string; readonly terminalId: string }): TerminalOutputResponse {
    const { running, bytes, exit } = this.#find(request);
    return {
      output: running.output.tail(bytes),
      truncated: running.output.total > bytes,
      ...(exit === undefined ? {} : { exitStatus: statusOf(exit) }),
    };
  }

  async wait(request: { readonly sessionId: string; readonly terminalId: string }): Promise<WaitForTerminalExitResponse> {
    return statusOf(await this.#find(request).running.exited);
  }

  /** Ends the command; its terminal stays until it is released. */
  async kill(request: { readonly sessionId: string; readonly terminalId: string }): Promise<Record<string, never>> {
    await this.#find(request).running.end();
    return {};
  }

  async release(request: { readonly sessionId: string; readonly terminalId: string }): Promise<Record<string, never>> {
    const { running } = this.#find(request);
    this.#known.delete(request.terminalId);
    await running.end();
    return {};
  }

  async close(): Promise<void> {
    const all = [...this.#known.values()];
    this.#known.clear();
    await Promise.all(all.map(({ running }) => running.end()));
  }

  #start(
    what: { readonly argv: readonly string[]; readonly cwd: string | null | undefined; readonly mark: string; readonly bytes: number },
    env: readonly { readonly name: string; readonly value: string }[],
  ): Promise<RunningCommand> {
    const output = new Output(what.bytes, 'end');
    const options = { ...this.command, env: { ...this.command.env, ...Object.fromEntries(env.map(({ name, value }) => [name, value])) } };
    const start = (path: string): Promise<RunningCommand> =>
      reach(this.at, path, (spot, home) =>
        inFolder(spot, (folder) => startCommand({ argv: what.argv, folder, home, mark: what.mark, output }, options, this.guard)),
      );
    return what.cwd === null || what.cwd === undefined
      ? this.at.folders.use(this.at.place, (root) => start(root.place.path))
      : start(what.cwd);
  }

  #find({ sessionId, terminalId }: { readonly sessionId: string; readonly terminalId: string }): Terminal {
    const terminal = this.#known.get(terminalId);
    if (terminal?.sessionId !== sessionId) throw RequestError.resourceNotFound(terminalId.slice(0, 100));
    return terminal;
  }
}

function statusOf({ code, signal }: Exit): TerminalExitStatus {
  return { exitCode: code, signal };
}
