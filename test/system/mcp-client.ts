/** A message of JSON-RPC as it came. */
export interface Said {
  readonly id?: number;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string };
}

const PROTOCOL = '2025-11-25';

/** An MCP client of the era with sessions, over plain HTTP; each request goes to the next address, as through a balancer without affinity. */
export class BareClient {
  #turn = 0;
  #id = 0;
  #sessionId: string | undefined;
  #without: number | undefined;

  constructor(
    private readonly addresses: readonly string[],
    private readonly token: string,
    /** The address of the first request. */
    first = 0,
  ) {
    this.#turn = first;
  }

  /** Opens a session. */
  async open(): Promise<this> {
    const clientInfo = { name: 'bare', version: '1' };
    const response = await this.post({
      id: this.#nextId(),
      method: 'initialize',
      params: { protocolVersion: PROTOCOL, capabilities: {}, clientInfo },
    });
    this.#sessionId = response.headers.get('mcp-session-id') ?? undefined;
    await answerIn(response);
    return this;
  }

  /** One request and its answer; `id` names it for a cancel. */
  async ask(method: string, params: unknown = {}, id = this.#nextId()): Promise<Said> {
    return answerIn(await this.post({ id, method, params }));
  }

  async tell(method: string, params: unknown = {}): Promise<void> {
    await (await this.post({ method, params })).arrayBuffer();
  }

  async toolNames(): Promise<string[]> {
    const { result } = await this.ask('tools/list');
    return (result?.['tools'] as { name: string }[]).map(({ name }) => name);
  }

  /** What the server says by itself, from the next address, until the signal. */
  async listen(onSaid: (said: Said) => void, signal: AbortSignal): Promise<void> {
    const response = await fetch(this.#next(), { headers: { ...this.#headers(), accept: 'text/event-stream' }, signal });
    if (!response.ok) throw new Error(`the stream was refused: ${response.status} ${await response.text()}`);
    void (async () => {
      for await (const said of events(response)) onSaid(said);
    })().catch(() => undefined);
  }

  /** A bare request, whatever the answer. */
  async post(message: { readonly id?: number; readonly method: string; readonly params: unknown }): Promise<Response> {
    const headers = { ...this.#headers(), 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    const init = { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', ...message }) };
    return fetch(this.#next(), init);
  }

  /** One address is not used until another is named, or none. */
  without(index: number | undefined): void {
    this.#without = index;
  }

  #next(): string {
    const open = this.addresses.filter((_address, index) => index !== this.#without);
    const address = open[this.#turn++ % open.length];
    if (address === undefined) throw new Error('there is no address');
    return address;
  }
  #nextId(): number {
    this.#id += 1;
    return this.#id;
  }
  #headers(): Record<string, string> {
    const session: Record<string, string> =
      this.#sessionId === undefined ? {} : { 'mcp-session-id': this.#sessionId, 'mcp-protocol-version': PROTOCOL };
    return { authorization: `Bearer ${this.token}`, ...session };
  }
}

async function answerIn(response: Response): Promise<Said> {
  if (!response.ok) throw new Error(`it was refused: ${response.status} ${(await response.text()).slice(0, 500)}`);
  if (response.headers.get('content-type')?.includes('application/json') === true) return (await response.json()) as Said;
  for await (const said of events(response)) if (said.id !== undefined && said.method === undefined) return said;
  throw new Error('the stream ended without an answer');
}

async function* events(response: Response): AsyncGenerator<Said> {
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    const parts = text.split('\n\n');
    text = parts.pop() ?? '';
    for (const part of parts) {
      const data = part
        .split('\n')
        .flatMap((line) => (line.startsWith('data:') ? [line.slice(5).trim()] : []))
        .join('\n');
      if (data !== '') yield JSON.parse(data) as Said;
    }
  }
}
