import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const PATIENCE_MS = 30_000;
const GRACE_MS = 5_000;

/** Programs that the story starts; all of them end with it. */
export class Children {
  readonly #running: ChildProcess[] = [];

  /** Starts a program and waits until it has written what says that it is ready. */
  async start(
    command: string,
    args: readonly string[],
    options: { readonly env: NodeJS.ProcessEnv; readonly ready: RegExp },
  ): Promise<void> {
    const child = spawn(command, args, { env: { ...process.env, ...options.env }, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#running.push(child);
    let written = '';
    const ready = new Promise<void>((resolve, reject) => {
      const onData = (data: Buffer) => {
        // Its first words are enough; later ones are its own affair.
        if (written.length < 64 * 1024) written += data.toString();
        if (options.ready.test(written)) resolve();
      };
      child.stdout.on('data', onData);
      child.stderr.on('data', onData);
      child.once('error', (error) => reject(new Error(`${command} could not be started: ${error.message}`)));
      child.once('exit', (code) => reject(new Error(`${command} ended (${code ?? 'by a signal'}):\n${written}`)));
    });
    const late = new AbortController();
    const tooLate = sleep(PATIENCE_MS, undefined, { signal: late.signal }).then(() =>
      Promise.reject(new Error(`${command} was not ready in time:\n${written}`)),
    );
    tooLate.catch(() => undefined);
    try {
      await Promise.race([ready, tooLate]);
    } finally {
      late.abort();
    }
  }

  /** Ends every program, gently first. */
  async stop(): Promise<void> {
    await Promise.all(
      this.#running.splice(0).map(async (child) => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const ended = once(child, 'exit');
        child.kill('SIGTERM');
        const kill = setTimeout(() => child.kill('SIGKILL'), GRACE_MS);
        await ended;
        clearTimeout(kill);
      }),
    );
  }
}

/** A port that nobody listens on just now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port is free');
  return address.port;
}
