import {
  client,
  methods,
  type ClientContext,
  type ContentBlock as PromptBlock,
  type InitializeResponse,
  type McpServer,
  type PromptResponse,
} from '@agentclientprotocol/sdk';
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { Files } from './acp/files.js';
import { open, type SignIn, type TerminalMethod } from './acp/opening.js';
import { outcomeOf } from './acp/options.js';
import { Questions } from './acp/questions.js';
import { startProgram, type Program } from './acp/program.js';
import { Terminals } from './acp/terminals.js';
import { Updates } from './acp/updates.js';
import type { Handler } from './attempt.js';
import type { Run, Turn } from './run.js';
import { Folders, type Place } from './workspace/folders.js';
import { Guard } from './workspace/guard.js';
import { machine } from './workspace/volume.js';

export type { SignIn, TerminalMethod };

export interface AcpOptions {
  /** The agent's program and its arguments; no shell reads them. */
  readonly command: string;
  readonly args?: readonly string[];
  /** What the agent finds in its environment beside PATH, LANG, TERM and HOME: the keys of its model. */
  readonly env?: Readonly<Record<string, string>>;
  /** The folder below which each session, and each workspace, has a folder of its own. */
  readonly root: string;
  /** Folders of workspaces by their ids, in place of those below `root`. */
  readonly workspaces?: Readonly<Record<string, string>>;
  /** Where the agent reaches the tools of its run: the edge's endpoint. An agent that speaks no MCP over HTTP is given none. @default AMBIT_EDGE_URL; none */
  readonly edgeUrl?: string;
  /** Whether the agent may write files through the protocol. @default true */
  readonly write?: boolean;
  /** Whether the agent may run commands through the protocol. @default true */
  readonly terminals?: boolean;
  /** What commands find in their environment beside PATH, LANG, TERM, HOME and PWD. */
  readonly terminalEnv?: Readonly<Record<string, string>>;
  /** A program that the agent and its commands are started through: a sandbox, a limiter. @default none */
  readonly launcher?: readonly string[];
  /** The user whom the agent runs as; the worker must be root. @default the worker's own */
  readonly runAs?: { readonly uid: number; readonly gid: number };
  /** Signs the agent in on a terminal, where somebody sits at one. @default it cannot be done */
  readonly signIn?: SignIn;
  /** How long the agent may take to open its session. @default 60_000 */
  readonly startMs?: number;
  /** How long a cancelled prompt may take to end before the agent is ended. @default 3_000 */
  readonly cancelMs?: number;
}

/** What is kept on the tape beside the agent's words. */
const Kept = z.object({ acp: z.object({ sessionId: z.string(), cwd: z.string(), promptedBy: z.string().nullable() }) });

const INTERRUPTED =
  'The agent was interrupted while it worked on this message. What it did until then is not known, so it was not asked again; look, and send a message.';

/** A worker's handler that has an agent of the Agent Client Protocol (version 1) do the run: `work('coder', agent.handler, { holds: agent.holds })`. */
export interface AcpAgent {
  readonly handler: Handler;
  readonly holds: (place: Place) => Promise<boolean>;
  /** Once its worker has closed. */
  readonly close: () => Promise<void>;
}

/**
 * Runs an ACP agent as the loop of a run: one process a run, in the session's folder, given the current message only. Its files and terminals are confined to
 * that folder, its requests for permission are put to a person, and nothing of it is left when the run ends.
 */
export function acpAgent(options: AcpOptions): AcpAgent {
  if (process.platform === 'win32') throw new Error('agents of the protocol need Linux or macOS');
  const { root, workspaces, runAs: owner } = options;
  const folders = new Folders({ root, workspaces, volume: machine, owner });
  const guard = new Guard();
  const agents = new Agents(options, folders, guard);
  return {
    handler: (run) => agents.handle(run),
    holds: (place) => folders.has(place),
    close: async () => {
      await guard.close();
      await folders.close();
    },
  };
}

class Agents {
  constructor(
    private readonly options: AcpOptions,
    private readonly folders: Folders,
    private readonly guard: Guard,
  ) {}

  async handle(run: Run): Promise<void> {
    let isInterrupted = false;
    for await (const turn of run.turns()) {
      const known = lastKept(turn);
      if (known?.promptedBy === run.originRunId) {
        isInterrupted = true;
        await turn.say({ content: [{ type: 'text', text: INTERRUPTED }], raw: kept({ ...known, promptedBy: null }) });
        continue;
      }
      await this.#turn(run, turn, known);
    }
    if (isInterrupted) run.end = 'failed';
  }

  async #turn(run: Run, turn: Turn, known: z.output<typeof Kept>['acp'] | undefined): Promise<void> {
    const place = { sessionId: run.sessionId, workspaceId: run.workspaceId };
    const { command, args = [], launcher = [], env = {}, runAs: owner } = this.options;
    const { program, cwd } = await this.folders.use(place, async (folder) => ({
      program: await startProgram(
        [command, ...args],
        { folder, mark: randomBytes(16).toString('hex'), options: { launcher, env, owner } },
        this.guard,
      ),
      cwd: folder.place.path,
    }));
    const terminals = new Terminals({ folders: this.folders, place }, { launcher, env: this.options.terminalEnv ?? {}, owner }, this.guard);
    const updates = new Updates((text) => run.output(text));
    try {
      await this.#connected({ run, program, updates, terminals, files: new Files({ folders: this.folders, place }) }, async (context) => {
        const sessionId = known?.cwd === cwd ? known.sessionId : undefined;
        const opened = await this.#open(context, { run, cwd, known: sessionId });
        updates.opened(opened.sessionId, opened.isLoaded);
        // From here on the agent may have done something: whoever takes the run after this attempt must not ask it the same again.
        await turn.mark(kept({ sessionId: opened.sessionId, cwd, promptedBy: run.originRunId }));
        const { stopReason } = await this.#prompt(context, { run, sessionId: opened.sessionId, prompt: promptOf(turn) });
        updates.end();
        await turn.say({
          content: updates.text === '' ? [] : [{ type: 'text', text: updates.text }],
          stop: stopReason,
          raw: kept({ sessionId: opened.sessionId, cwd, promptedBy: null }, updates.calls),
        });
      });
    } finally {
      updates.end();
      await terminals.close();
      await program.end();
    }
  }

  /** Speaks with the agent for as long as it lives. What it asked and nobody answered is withdrawn at the end. */
  async #connected(
    parts: {
      readonly run: Run;
      readonly program: Program;
      readonly updates: Updates;
      readonly terminals: Terminals;
      readonly files: Files;
    },
    work: (context: ClientContext) => Promise<void>,
  ): Promise<void> {
    const { run, program, updates, terminals, files } = parts;
    const { write = true, terminals: hasTerminals = true } = this.options;
    const { fs, session, terminal } = methods.client;
    const questions = new Questions(run);
    const app = client({ name: 'ambit' })
      .onNotification(session.update, ({ params }) => updates.take(params))
      .onRequest(session.requestPermission, async ({ params, signal }) => ({
        outcome: outcomeOf(await questions.ask(params.toolCall, signal), params.options),
      }))
      .onRequest(fs.readTextFile, ({ params }) => files.read(params));
    if (write) app.onRequest(fs.writeTextFile, ({ params }) => files.write(params));
    if (hasTerminals)
      app
        .onRequest(terminal.create, ({ params }) => terminals.create(params))
        .onRequest(terminal.output, ({ params }) => terminals.output(params))
        .onRequest(terminal.waitForExit, ({ params }) => terminals.wait(params))
        .onRequest(terminal.kill, ({ params }) => terminals.kill(params))
        .onRequest(terminal.release, ({ params }) => terminals.release(params));
    const died = program.exited.then(({ code, signal }) => {
      throw new Error(`the agent ended by itself (${code ?? signal}): ${program.complaint().trim().slice(-500)}`);
    });
    died.catch(() => undefined);
    try {
      await app.connectWith(program.stream, (context) => Promise.race([work(context), died]));
    } finally {
      await questions.close();
    }
  }

  async #open(
    context: ClientContext,
    { run, cwd, known }: { readonly run: Run; readonly cwd: string; readonly known: string | undefined },
  ) {
    const { write = true, terminals = true, signIn, startMs = 60_000 } = this.options;
    return open(context, {
      cwd,
      known,
      canWrite: write,
      hasTerminals: terminals,
      signIn,
      signal: AbortSignal.any([run.signal, AbortSignal.timeout(startMs)]),
      servers: (agent) => this.#servers(run, agent),
    });
  }

  /** The run's tools, as one server at the edge; nothing of any server is handed over itself. */
  async #servers(run: Run, { agentCapabilities }: InitializeResponse): Promise<McpServer[]> {
    const { edgeUrl = process.env.AMBIT_EDGE_URL } = this.options;
    if (edgeUrl === undefined || agentCapabilities?.mcpCapabilities?.http !== true) return [];
    const headers = [{ name: 'Authorization', value: `Bearer ${await run.edgeToken()}` }];
    return [{ type: 'http', name: 'ambit', url: edgeUrl, headers }];
  }

  /** One prompt; cancelled with its run: the agent is told, and waited for a moment. */
  async #prompt(
    context: ClientContext,
    { run, sessionId, prompt }: { readonly run: Run; readonly sessionId: string; readonly prompt: PromptBlock[] },
  ): Promise<PromptResponse> {
    run.signal.throwIfAborted();
    const answer = context.request(methods.agent.session.prompt, { sessionId, prompt });
    answer.catch(() => undefined);
    let cancel: () => void = () => undefined;
    const cancelled = new Promise<'cancelled'>((resolve) => {
      cancel = () => resolve('cancelled');
      run.signal.addEventListener('abort', cancel, { once: true });
    });
    try {
      const first = await Promise.race([answer, cancelled]);
      if (first !== 'cancelled') return first;
      await context.notify(methods.agent.session.cancel, { sessionId });
      return await Promise.race([answer, delay(this.options.cancelMs ?? 3_000, { stopReason: 'cancelled' as const }, { ref: false })]);
    } finally {
      run.signal.removeEventListener('abort', cancel);
    }
  }
}

function kept(acp: z.output<typeof Kept>['acp'], calls: Updates['calls'] = []): unknown {
  return { acp: { ...acp, ...(calls.length === 0 ? {} : { calls }) } };
}

/** What the agent's newest message on the tape says of its session. */
function lastKept({ messages }: Turn): z.output<typeof Kept>['acp'] | undefined {
  for (const message of messages.toReversed()) {
    if (message.role !== 'assistant') continue;
    const { data } = Kept.safeParse(message.raw);
    if (data !== undefined) return data.acp;
  }
  return undefined;
}

/** What was said since the agent spoke last; the agent knows the rest. */
function promptOf({ messages }: Turn): PromptBlock[] {
  const said = messages.slice(messages.findLastIndex(({ role }) => role === 'assistant') + 1);
  const text = said.flatMap((message) =>
    message.role === 'user'
      ? message.content.flatMap((block) => (block.type === 'text' && typeof block['text'] === 'string' ? [block['text']] : []))
      : [],
  );
  return [{ type: 'text', text: text.join('\n\n') }];
}
