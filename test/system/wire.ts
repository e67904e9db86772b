import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** The way between one client and nats-server, which a test can cut, or have lose what it names. */
export class Wire {
  readonly #sockets = new Set<Socket>();
  /** The head of messages to the client that get lost; its first group is their length. */
  drop: RegExp | undefined;
  dropped = 0;

  #port = 0;

  private constructor(
    private readonly server: Server,
    private readonly target: URL,
  ) {}

  static async start(natsUrl: string): Promise<Wire> {
    const server = createServer();
    const wire = new Wire(server, new URL(natsUrl));
    server.on('connection', (client) => wire.#join(client));
    await wire.mend();
    return wire;
  }

  get url(): string {
    return `nats://127.0.0.1:${this.#port}`;
  }

  /** Lets clients through, again after a cut. */
  async mend(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (this.server.address() as AddressInfo).port;
  }

  /** Nothing passes any more, and nobody gets through until it is mended. */
  cut(): void {
    this.server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.server.once('close', resolve));
    this.cut();
    await closed;
  }

  #join(client: Socket): void {
    const server = connect(Number(this.target.port), this.target.hostname);
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        client.destroy();
        server.destroy();
        this.#sockets.delete(socket);
      });
    }
    client.on('data', (bytes) => server.write(bytes));
    server.on('data', (bytes) => client.write(Buffer.from(this.#without(bytes.toString('latin1')), 'latin1')));
  }

  #without(text: string): string {
    const found = this.drop?.exec(text);
    if (found === null || found === undefined) return text;
    this.dropped += 1;
    const end = found.index + found[0].length + Number(found[1]) + 2;
    return this.#without(text.slice(0, found.index) + text.slice(end));
  }
}
