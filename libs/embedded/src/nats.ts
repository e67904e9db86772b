import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startGuarded, type GuardedProcess } from './guarded-process.js';
import { freePort } from './ports.js';
import { awaitPreviousProcess } from './previous.js';
import { waitForTcp } from './ready.js';

export interface NatsOptions {
  /** Path of the nats-server program. */
  readonly binary: string;
  /** Holds its configuration, JetStream store and log; only one server may use it. */
  readonly dataDir: string;
  /** Wanted port; another is taken when it is in use. */
  readonly port?: number;
  /** Lines for the server's configuration file: accounts and resolver. Without them any client may do anything. */
  readonly authorization?: string;
  /** @default `nats.log` in `dataDir` */
  readonly logFile?: string;
  /**
   * How often what was stored is synced to the disk: `always` is before each acknowledgement, else a duration like `1s`. What is acknowledged is in
   * the kernel's hands either way and outlives a killed process; a power cut may take the last interval. @default `1s`
   */
  readonly syncInterval?: string;
}

export interface NatsServer {
  readonly url: string;
  readonly port: number;
  /** Base URL of the monitoring endpoint (`/healthz`, `/varz`, `/jsz`). */
  readonly monitorUrl: string;
  readonly process: GuardedProcess;
  stop(): Promise<void>;
}

const READY_MS = 20_000;
const SYNC_INTERVAL = /^(always|[1-9][0-9]{0,4}(ms|s|m))$/;

/** Starts nats-server with JetStream on 127.0.0.1 and answers when its streams are ready. */
export async function startNats(options: NatsOptions): Promise<NatsServer> {
  const { syncInterval = '1s' } = options;
  if (!SYNC_INTERVAL.test(syncInterval)) throw new Error(`a sync interval is "always" or a duration like "1s", not "${syncInterval}"`);
  await mkdir(options.dataDir, { recursive: true, mode: 0o700 });
  const pidFile = join(options.dataDir, 'nats.pid');
  await awaitPreviousProcess(pidFile, 'nats-server');
  const port = await freePort(options.port);
  const monitorPort = await freePort();
  const config = join(options.dataDir, 'nats.conf');
  await writeFile(
    config,
    [
      'server_name: ambit-embedded',
      `listen: "127.0.0.1:${port}"`,
      `http: "127.0.0.1:${monitorPort}"`,
      `pid_file: ${JSON.stringify(pidFile)}`,
      'max_payload: 1MB',
      'write_deadline: "10s"',
      // Two seconds are the default: a process that starts with a dozen others on a busy machine is cut off before it has signed.
      'authorization: { timeout: 10 }',
      'jetstream {',
      `  store_dir: ${JSON.stringify(join(options.dataDir, 'jetstream'))}`,
      `  sync_interval: ${JSON.stringify(syncInterval)}`,
      '}',
      options.authorization ?? '',
    ].join('\n'),
    { mode: 0o600 },
  );
  const logFile = options.logFile ?? join(options.dataDir, 'nats.log');
  const guarded = startGuarded({ command: options.binary, args: ['-c', config], output: { file: logFile }, graceSeconds: 10 });
  const monitorUrl = `http://127.0.0.1:${monitorPort}`;
  try {
    await waitForTcp({ port, timeoutMs: READY_MS, exited: guarded.exited });
    await waitForHealth(`${monitorUrl}/healthz`);
  } catch (error) {
    await guarded.stop();
    throw new Error(`nats-server did not start; its log is ${logFile}`, { cause: error });
  }
  return {
    url: `nats://127.0.0.1:${port}`,
    port,
    monitorUrl,
    process: guarded,
    stop: async () => void (await guarded.stop()),
  };
}

async function waitForHealth(url: string): Promise<void> {
  const end = performance.now() + READY_MS;
  for (;;) {
    const healthy = await fetch(url, { signal: AbortSignal.timeout(2_000) }).then(
      (response) => response.ok,
      () => false,
    );
    if (healthy) return;
    if (performance.now() > end) throw new Error(`${url} did not become healthy within ${READY_MS / 1_000} s`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
