import { findNatsServer, startNats, startPostgres, type NatsServer, type PostgresServer } from '@ambit/embedded';
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface NatsProcessOptions {
  readonly folder: string;
  readonly cacheDir: string;
  readonly authorization: string;
}

/** A nats-server that comes back where it was, with what it had stored. */
export class NatsProcess {
  readonly url: string;
  readonly #options: NatsProcessOptions;
  readonly #binary: string;
  #server: NatsServer;

  private constructor(options: NatsProcessOptions, binary: string, server: NatsServer) {
    this.#options = options;
    this.#binary = binary;
    this.#server = server;
    this.url = server.url;
  }

  static async start(options: NatsProcessOptions): Promise<NatsProcess> {
    const { folder, cacheDir, authorization } = options;
    try {
      const { path } = await findNatsServer({ cacheDir });
      return new NatsProcess(options, path, await startNats({ binary: path, dataDir: folder, authorization }));
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  /** SIGKILL, as a crash; answers when it is gone. */
  async kill(): Promise<void> {
    process.kill(this.#server.process.pid, 'SIGKILL');
    await this.exited;
  }

  /** Settles when the server that runs now has ended. */
  get exited(): Promise<unknown> {
    return this.#server.process.exited;
  }

  /** The same server again, on the same port. */
  async restart(): Promise<void> {
    await this.#server.stop();
    const { folder, authorization } = this.#options;
    const { port } = this.#server;
    this.#server = await startNats({ binary: this.#binary, dataDir: folder, authorization, port });
    if (this.#server.port !== port) throw new Error(`port ${port} was taken while nats-server was away`);
  }

  /** Killed, and JetStream's store is gone when it comes back; identities are where they were. */
  async lose(): Promise<void> {
    await this.kill();
    await rm(join(this.#options.folder, 'jetstream'), { recursive: true, force: true });
    await this.restart();
  }

  /** Ends it and forgets what it stored. */
  async remove(): Promise<void> {
    await this.#server.stop();
    await rm(this.#options.folder, { recursive: true, force: true });
  }
}

const cp = (from: string, to: string): Promise<unknown> => run('cp', ['-a', from, to]);

/** A PostgreSQL that can go away and come back with its data. */
export class DatabaseProcess {
  readonly #folder: string;
  #server: PostgresServer;

  private constructor(folder: string, server: PostgresServer) {
    this.#folder = folder;
    this.#server = server;
  }

  get url(): string {
    return this.#server.url;
  }

  static async start(): Promise<DatabaseProcess> {
    const folder = await mkdtemp(join(tmpdir(), 'ambit-postgres-'));
    // As root the server runs as another user, who must be able to enter the folder above its data.
    await chmod(folder, 0o711);
    try {
      return new DatabaseProcess(folder, await startPostgres({ dataDir: join(folder, 'data'), durable: false }));
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  async stop(): Promise<void> {
    await this.#server.stop();
  }

  /** SIGKILL to the server, as a crash; answers when it is gone. What was committed is there after a restart. */
  async kill(): Promise<void> {
    process.kill(this.#server.process.pid, 'SIGKILL');
    await this.exited;
  }

  /** Settles when the server that runs now has ended. */
  get exited(): Promise<unknown> {
    return this.#server.process.exited;
  }

  /** The same cluster again, on the same port. */
  async restart(): Promise<void> {
    await this.#server.stop();
    const { port } = this.#server;
    this.#server = await startPostgres({ dataDir: join(this.#folder, 'data'), durable: false, port });
    if (this.#server.port !== port) throw new Error(`port ${port} was taken while PostgreSQL was away`);
  }

  /** Keeps its data as they are now; it is away for a moment. */
  async backUp(): Promise<void> {
    await this.stop();
    await cp(join(this.#folder, 'data'), join(this.#folder, 'backup'));
    await this.restart();
  }

  /** Puts back what was kept. */
  async restore(): Promise<void> {
    await this.stop();
    await rm(join(this.#folder, 'data'), { recursive: true });
    await cp(join(this.#folder, 'backup'), join(this.#folder, 'data'));
    await this.restart();
  }

  /** Ends it and forgets its data. */
  async remove(): Promise<void> {
    await this.#server.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
