import { connect } from 'node:net';
import type { Exit } from './guarded-process.js';

/** Answers when something accepts connections on the port; throws when the process ended first or the time is up. */
export async function waitForTcp(options: {
  readonly port: number;
  readonly timeoutMs: number;
  readonly exited: Promise<Exit>;
}): Promise<void> {
  let ended: Exit | undefined;
  void options.exited.then((exit) => (ended = exit));
  const end = performance.now() + options.timeoutMs;
  for (;;) {
    if (await accepts(options.port)) return;
    if (ended !== undefined) throw new Error(`the process ended with ${ended.signal ?? `code ${ended.code ?? 'unknown'}`}`);
    if (performance.now() > end) throw new Error(`nothing listens on port ${options.port} after ${options.timeoutMs / 1_000} s`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
