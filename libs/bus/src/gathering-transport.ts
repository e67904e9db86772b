import { NodeTransport, nodeResolveHost } from '@nats-io/transport-node/lib/node_transport.js';
import { NatsConnectionImpl, setTransportFactory } from '@nats-io/nats-core/internal';
import type { ConnectionOptions, NatsConnection } from '@nats-io/nats-core';

/** Writes what one turn of the event loop sends in one piece: a system call for each message costs more than most messages. */
class GatheringTransport extends NodeTransport {
  #frames: Uint8Array[] = [];

  override send(frame: Uint8Array): void {
    if (this.#frames.push(frame) === 1) setImmediate(() => this.#flush());
  }

  override async close(error?: Error): Promise<void> {
    this.#flush();
    await super.close(error);
  }

  override disconnect(): void {
    this.#flush();
    super.disconnect();
  }

  #flush(): void {
    const frames = this.#frames;
    this.#frames = [];
    const [first] = frames;
    if (first !== undefined) super.send(frames.length === 1 ? first : Buffer.concat(frames));
  }
}

/** Connects like the library's own `connect`, over a transport that gathers what is sent. */
export function connectGathering(options: ConnectionOptions): Promise<NatsConnection> {
  setTransportFactory({ factory: () => new GatheringTransport(), dnsResolveFn: nodeResolveHost });
  return NatsConnectionImpl.connect(options);
}
