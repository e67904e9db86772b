import {
  methods,
  PROTOCOL_VERSION,
  RequestError,
  type AuthMethod,
  type ClientContext,
  type InitializeResponse,
  type McpServer,
} from '@agentclientprotocol/sdk';

const AUTH_REQUIRED = -32_000;

/** Signs in by running the agent's own program on a terminal, by its arguments; gives whether that succeeded. */
export type SignIn = (method: TerminalMethod, signal: AbortSignal) => Promise<boolean>;

export type TerminalMethod = AuthMethod & { readonly type: 'terminal' };

export interface OpeningOptions {
  readonly cwd: string;
  /** The agent's session of an earlier prompt of this conversation. */
  readonly known: string | undefined;
  readonly canWrite: boolean;
  readonly hasTerminals: boolean;
  readonly signIn: SignIn | undefined;
  readonly signal: AbortSignal;
  /** What the agent may be told of, once it has said which transports it speaks. */
  readonly servers: (agent: InitializeResponse) => Promise<McpServer[]>;
}

export interface Opened {
  readonly sessionId: string;
  /** Former prompts were told again while it was opened. */
  readonly isLoaded: boolean;
}

/** Initialises an agent and opens its session: resumed, else loaded, else a new one; nothing is called that it did not advertise. */
export async function open(context: ClientContext, options: OpeningOptions): Promise<Opened> {
  const { signal } = options;
  const agent = await context.request(
    methods.agent.initialize,
    {
      protocolVersion: PROTOCOL_VERSION,
      clientInfo: { name: 'ambit', title: 'Ambit', version: '1' },
      clientCapabilities: {
        fs: { readTextFile: true, writeTextFile: options.canWrite },
        terminal: options.hasTerminals,
        // Only where it can be carried out.
        ...(options.signIn === undefined ? {} : { auth: { terminal: true } }),
      },
    },
    { cancellationSignal: signal },
  );
  if (agent.protocolVersion !== PROTOCOL_VERSION)
    throw new Error(`the agent speaks version ${agent.protocolVersion} of the protocol; this worker speaks ${PROTOCOL_VERSION}`);
  try {
    return await session(context, agent, options);
  } catch (error) {
    if (!(error instanceof RequestError) || error.code !== AUTH_REQUIRED) throw error;
    await signIn(context, agent, options);
    return session(context, agent, options);
  }
}

async function session(
  context: ClientContext,
  agent: InitializeResponse,
  { cwd, known, servers, signal }: OpeningOptions,
): Promise<Opened> {
  const { loadSession, sessionCapabilities } = agent.agentCapabilities ?? {};
  const mcpServers = await servers(agent);
  const sending = { cancellationSignal: signal };
  if (known !== undefined && sessionCapabilities?.resume) {
    await context.request(methods.agent.session.resume, { sessionId: known, cwd, mcpServers }, sending);
    return { sessionId: known, isLoaded: true };
  }
  if (known !== undefined && loadSession === true) {
    await context.request(methods.agent.session.load, { sessionId: known, cwd, mcpServers }, sending);
    return { sessionId: known, isLoaded: true };
  }
  const { sessionId } = await context.request(methods.agent.session.new, { cwd, mcpServers }, sending);
  return { sessionId, isLoaded: false };
}

/** Tries the agent's ways to sign in on a terminal, in its order, until one succeeds; then tells the agent. */
async function signIn(
  context: ClientContext,
  { authMethods = [] }: InitializeResponse,
  { signIn: run, signal }: OpeningOptions,
): Promise<void> {
  const names = authMethods.map(({ name }) => name.slice(0, 100)).join(', ');
  const ways = authMethods.filter(isTerminal);
  if (run === undefined || ways.length === 0)
    throw new Error(
      `the agent has to be signed in first${names === '' ? '' : ` (${names})`}; do that where it runs, or give the worker a signIn`,
    );
  for (const method of ways) {
    signal.throwIfAborted();
    if (!(await run(method, signal))) continue;
    await context.request(methods.agent.authenticate, { methodId: method.id }, { cancellationSignal: signal });
    return;
  }
  throw new Error(`signing in did not succeed (${names})`);
}

function isTerminal(method: AuthMethod): method is TerminalMethod {
  return 'type' in method && method.type === 'terminal';
}
