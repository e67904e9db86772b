import { createHmac } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request that a webhook's receiver got. */
export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: Readonly<Record<string, any>>; // eslint-disable-line @typescript-eslint/no-explicit-any -- tests look into bodies of every shape
}

/** Somebody else's HTTP server that webhooks are sent to. It takes everything, or answers as a path was told to. */
export class Receiver {
  readonly received: Received[] = [];
  readonly #answers = new Map<string, readonly number[]>();
  readonly #waiting = new Set<() => void>();
  #url = '';
  #close: () => Promise<void> = () => Promise.resolve();

  static async start(): Promise<Receiver> {
    const receiver = new Receiver();
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        const path = request.url ?? '/';
        const before = receiver.of(path, String(request.headers['webhook-id'])).length;
        response.writeHead(receiver.#answers.get(path)?.[before] ?? 204).end();
        receiver.received.push({ path, headers: request.headers, text, body: JSON.parse(text) as Received['body'] });
        for (const look of receiver.#waiting) look();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    receiver.#url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    receiver.#close = async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    };
    return receiver;
  }

  stop(): Promise<void> {
    return this.#close();
  }

  /** The URL of a path; the first requests about each event are answered with these statuses, all further ones with 204. */
  at(path: string, ...answers: readonly number[]): string {
    this.#answers.set(path, answers);
    return this.#url + path;
  }

  /** What came to a path about one event, so far. */
  of(path: string, id: string): readonly Received[] {
    return this.received.filter((one) => one.path === path && one.headers['webhook-id'] === id);
  }

  /** Resolves when so many requests about one event came to a path. */
  async times(path: string, id: string, count: number): Promise<readonly Received[]> {
    if (this.of(path, id).length < count)
      await new Promise<void>((resolve) => {
        const look = (): void => {
          if (this.of(path, id).length < count) return;
          this.#waiting.delete(look);
          resolve();
        };
        this.#waiting.add(look);
      });
    return this.of(path, id);
  }
}

/** The signature that a receiver works out for itself, from the key that it was given. */
export function expectedSignature({ headers, text }: Received, key: string | Buffer): string {
  const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${text}`;
  return `v1,${createHmac('sha256', key).update(signed).digest('base64')}`;
}
