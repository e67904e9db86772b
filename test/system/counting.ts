import type { Input, mcpBroker } from '@ambit/contracts';
import { startGuarded } from '@ambit/embedded';
import { until } from '@ambit/testing';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('../fixtures/counting-server.mjs', import.meta.url));
const HELD_MS = 30_000;

/** The file and the desk of counting servers: how often each tool really ran, and when a held one goes on. */
export class Counting {
  readonly #folder: string;
  readonly #url: string;
  readonly #close: () => Promise<void>;
  readonly #held = new Map<string, ServerResponse>();
  readonly #waiting = new Map<string, () => void>();

  private constructor(folder: string, url: string, close: () => Promise<void>) {
    this.#folder = folder;
    this.#url = url;
    this.#close = close;
  }

  static async start(): Promise<Counting> {
    const folder = await mkdtemp(join(tmpdir(), 'ambit-counting-'));
    // The servers may run as another user.
    await chmod(folder, 0o755);
    await writeFile(join(folder, 'ran'), '');
    await chmod(join(folder, 'ran'), 0o666);
    let arrived: (name: string, response: ServerResponse) => void = () => undefined;
    const desk = createServer((request, response) => arrived(decodeURIComponent((request.url ?? '/').slice(1)), response));
    await new Promise<void>((resolve) => desk.listen(0, '127.0.0.1', resolve));

    const { port } = desk.address() as AddressInfo;
    const counting = new Counting(folder, `http://127.0.0.1:${port}`, async () => {
      desk.closeAllConnections();
      await new Promise((resolve) => desk.close(resolve));
    });
    arrived = (name, response) => counting.#arrive(name, response);
    return counting;
  }

  /** A stdio server of this program. `readOnly` names tools that an administrator declares so. */
  server(slug: string, more: Partial<Input<typeof mcpBroker.putServer>> = {}): Input<typeof mcpBroker.putServer> {
    return {
      slug,
      transport: { type: 'stdio', command: process.execPath, args: [program], env: this.environment },
      ...more,
    };
  }

  /** One that offers these tools too, and leaves a line under its name for each message it hears, each listing and each call. */
  offering(slug: string, tools: readonly string[]): Input<typeof mcpBroker.putServer> {
    const env = { ...this.environment, SERVER: slug, TOOLS: JSON.stringify(tools) };
    return this.server(slug, { transport: { type: 'stdio', command: process.execPath, args: [program], env } });
  }

  /** The same program as a process that serves over HTTP until it is stopped; somebody else's machine, so to say. */
  async remote(slug: string): Promise<{ readonly server: Input<typeof mcpBroker.putServer>; stop(): Promise<unknown> }> {
    const remote = startGuarded({
      command: process.execPath,
      args: [program, '--http'],
      env: { PATH: process.env.PATH, ...this.environment },
    });
    await until(() => remote.lastOutput().includes('\n'));
    const url = remote.lastOutput().trim();
    return { server: { slug, transport: { type: 'http', url } }, stop: () => remote.stop() };
  }

  /** For a server of this program that is configured elsewhere, in a plugin for instance. */
  get environment(): { readonly COUNTER_FILE: string; readonly DESK_URL: string } {
    return { COUNTER_FILE: join(this.#folder, 'ran'), DESK_URL: this.#url };
  }

  /** How often a tool ran with this name. */
  async ran(tool: string, name: string): Promise<number> {
    const lines = (await readFile(join(this.#folder, 'ran'), 'utf8')).split('\n');
    return lines.filter((line) => line === `${tool} ${name}`).length;
  }

  /** The methods of all messages that a server heard which was made by {@link offering}, in order. */
  async heard(slug: string): Promise<string[]> {
    const lines = (await readFile(join(this.#folder, 'ran'), 'utf8')).split('\n');
    return lines.filter((line) => line.startsWith(`heard ${slug} `)).map((line) => line.slice(`heard ${slug} `.length));
  }

  /** How often each name was counted, by whatever tool. */
  async effects(): Promise<ReadonlyMap<string, number>> {
    const found = new Map<string, number>();
    for (const line of (await readFile(join(this.#folder, 'ran'), 'utf8')).split('\n')) {
      const [, name, ...more] = line.split(' ');
      if (name !== undefined && more.length === 0) found.set(name, (found.get(name) ?? 0) + 1);
    }
    return found;
  }

  /** How often a server of this program was started. */
  async started(): Promise<number> {
    return (await readFile(join(this.#folder, 'ran'), 'utf8')).split('\n').filter((line) => line === 'started').length;
  }

  /** How many were in the middle of a start at once: there, and not listed yet. All have to be made by {@link offering}. */
  async startedAtOnce(): Promise<number> {
    const unlisted = new Set<string>();
    let now = 0;
    let most = 0;
    for (const line of (await readFile(join(this.#folder, 'ran'), 'utf8')).split('\n')) {
      const [word, slug = '', method] = line.split(' ');
      if (word === 'started') most = Math.max(most, ++now);
      if (word === 'heard' && method === 'initialize') unlisted.add(slug);
      // A list that is read again is no start's.
      if (word === 'list' && unlisted.delete(slug)) now -= 1;
    }
    return most;
  }

  /** Resolves once a `hold` of this name is in the middle of its call. */
  async held(name: string): Promise<void> {
    if (this.#held.has(name)) return;
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no call holds "${name}" within ${HELD_MS / 1_000} s`)), HELD_MS);
      this.#waiting.set(name, () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  /** Lets the `hold` of this name go on. */
  release(name: string): void {
    this.#held.get(name)?.end();
    this.#held.delete(name);
  }

  async stop(): Promise<void> {
    await this.#close();
    await rm(this.#folder, { recursive: true, force: true });
  }

  #arrive(name: string, response: ServerResponse): void {
    this.#held.set(name, response);
    this.#waiting.get(name)?.();
    this.#waiting.delete(name);
  }
}
