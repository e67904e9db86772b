import { createServer, type Server, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';

/** A wire between a client and a server that can be cut: nothing passes any more, and neither side is told. */
export class CutWire {
  readonly #sockets = new Set<Socket>();
  #isCut = false;

  private constructor(
    readonly url: string,
    private readonly server: Server,
  ) {}

  static async to(target: string): Promise<CutWire> {
    const { hostname, port } = new URL(target);
    let join: (client: Socket) => void = () => undefined;
    const server = createServer((client) => join(client));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const wire = new CutWire(`nats://127.0.0.1:${(server.address() as AddressInfo).port}`, server);
    join = (client) => {
      const far = connect(Number(port), hostname);
      for (const [from, to] of [
        [client, far],
        [far, client],
      ] as const) {
        wire.#sockets.add(from);
        from.on('data', (data) => (wire.#isCut ? undefined : to.write(data)));
        from.on('error', () => undefined);
        from.on('close', () => (wire.#isCut ? undefined : to.destroy()));
      }
    };
    return wire;
  }

  cut(): void {
    this.#isCut = true;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
