import { SYNTHETIC, syntheticData, TRANSPORT_SECRET } from '@ambit/mcp';
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import { spawn, type ChildProcess } from 'node:child_process';
import { Duplex, type Readable, type Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { lastWords } from './last-words.js';
import { LineReader, type OversizedLine } from './line-reader.js';

export interface ChildSpec {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
  readonly uid: number | undefined;
  readonly gid: number | undefined;
  readonly memoryBytes: number | undefined;
}

const GUARD = fileURLToPath(new URL('../bin/guard.js', import.meta.url));
/** Interpreted only, one thread for collection, a small heap: a guard is idle all its life. */
const GUARD_FLAGS = ['--jitless', '--v8-pool-size=0', '--max-semi-space-size=1', '--max-old-space-size=32'];
const LINE_BYTES = 10 * 1024 * 1024;
const STDERR_TAIL_BYTES = 8 * 1024;

function isMessage(value: unknown): value is JSONRPCMessage {
  return (
    typeof value === 'object' &&
    value !== null &&
    'jsonrpc' in value &&
    value.jsonrpc === '2.0' &&
    ('method' in value || 'result' in value || 'error' in value)
  );
}

/** An MCP transport to a stdio server that runs in a process group of its own under a guard. */
export class GuardedChild implements Transport {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: Transport['onmessage'];
  /** The SDK tells stdio transports by these two names. */
  readonly stderr = null;
  pid: number | null = null;

  private guard: ChildProcess | undefined;
  private stdin: Writable | undefined;
  private control: Duplex | undefined;
  private readonly open = new Set<number | string>();
  private stderrTail = '';
  private end: string | undefined;
  private ended: Promise<void> = Promise.resolve();

  constructor(private readonly spec: ChildSpec) {}

  /** Why the server is gone, as one sentence that may quote the end of its error output; undefined while it runs. */
  get reason(): string | undefined {
    if (this.end === undefined) return undefined;
    const words = lastWords(this.stderrTail);
    return words === undefined ? this.end : `${this.end}; its last words: ${words}`;
  }

  start(): Promise<void> {
    const guard = spawn(process.execPath, [...GUARD_FLAGS, GUARD], { env: {}, stdio: ['pipe', 'pipe', 'pipe', 'pipe'], detached: true });
    this.guard = guard;
    const [stdin, stdout, stderr, control] = guard.stdio;
    if (!(control instanceof Duplex) || stdin === null || stdout === null || stderr === null) throw new Error('the guard has no pipes');
    this.stdin = stdin;
    this.control = control;
    stdin.on('error', (error) => this.onerror?.(error));
    this.readOutput(stdout);
    this.readErrors(stderr);
    this.ended = new Promise((resolve) => {
      guard.once('close', () => {
        this.finish('The server process ended');
        resolve();
      });
    });
    const started = this.readControl(control);
    guard.once('error', (error) => this.finish(`The guard of the server could not be started: ${error.message}`));
    control.write(`${JSON.stringify(this.spec)}\n`);
    return started;
  }

  /** Tells the guard that the runner lives and holds its lease; without it for 4 s the server is killed. */
  beat(): void {
    this.control?.write('.');
  }

  send(message: JSONRPCMessage): Promise<void> {
    const { stdin } = this;
    if (stdin === undefined || !stdin.writable || this.end !== undefined) return Promise.reject(new Error('Not connected'));
    if ('id' in message && 'method' in message) this.open.add(message.id);
    if (stdin.write(`${JSON.stringify(message)}\n`)) return Promise.resolve();
    return new Promise((resolve) => {
      const go = (): void => {
        stdin.off('drain', go);
        stdin.off('close', go);
        resolve();
      };
      stdin.once('drain', go);
      stdin.once('close', go);
    });
  }

  /** Ends the control pipe: the guard kills the group. Resolves when nothing is left. */
  async close(): Promise<void> {
    this.end ??= 'The server was stopped';
    this.stdin?.end();
    this.control?.end();
    await this.ended;
  }

  private readOutput(stdout: Readable): void {
    const reader = new LineReader({
      limitBytes: LINE_BYTES,
      onLine: (line) => this.receive(line),
      onOversized: (line) => this.refuse(line),
      onFlood: () => {
        this.end ??= `The server wrote a line longer than ${4 * LINE_BYTES} bytes and was stopped`;
        this.control?.end();
        stdout.destroy();
      },
    });
    stdout.on('data', (chunk: Buffer) => reader.push(chunk));
    stdout.on('error', (error) => this.onerror?.(error));
  }

  private receive(line: string): void {
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch {
      // Servers that print to stdout what belongs on stderr are common; the line is no message, and nothing more.
      return;
    }
    if (!isMessage(message)) return;
    if ('id' in message && !('method' in message) && message.id !== undefined) this.open.delete(message.id);
    this.onmessage?.(message);
  }

  /** An answer over the limit fails the one call that it answers, which its ends tell; where they do not, the session ends. */
  private refuse(line: OversizedLine): void {
    const id = Number(
      /^\{"jsonrpc":"2\.0","id":(\d+)[,}]/.exec(line.head)?.[1] ??
        /"jsonrpc":"2\.0","id":(\d+)\}\s*$/.exec(line.tail)?.[1] ??
        /"id":(\d+),"jsonrpc":"2\.0"\}\s*$/.exec(line.tail)?.[1] ??
        Number.NaN,
    );
    if (!this.open.delete(id)) {
      this.end ??= `The server wrote a message of ${line.bytes} bytes that answers no open request`;
      this.control?.end();
      return;
    }
    this.onmessage?.({
      jsonrpc: '2.0',
      id,
      error: {
        code: SYNTHETIC.tooLarge,
        message: `The answer is larger than ${LINE_BYTES} bytes`,
        data: syntheticData(TRANSPORT_SECRET, LINE_BYTES),
      },
    });
  }

  private readErrors(stderr: Readable): void {
    stderr.on('data', (chunk: Buffer) => {
      this.stderrTail = (this.stderrTail + chunk.subarray(-STDERR_TAIL_BYTES).toString('utf8')).slice(-STDERR_TAIL_BYTES);
    });
    stderr.on('error', (error) => this.onerror?.(error));
  }

  /** Resolves when the guard says that the server runs; rejects when it says why it cannot. */
  private readControl(control: Duplex): Promise<void> {
    return new Promise((resolve, reject) => {
      const reader = new LineReader({
        limitBytes: 64 * 1024,
        onLine: (line) => {
          const fact: unknown = JSON.parse(line);
          if (typeof fact !== 'object' || fact === null) return;
          if ('pid' in fact && typeof fact.pid === 'number') {
            this.pid = fact.pid;
            resolve();
          }
          if ('failed' in fact)
            this.end ??=
              this.pid === null
                ? `The server could not be started: ${String(fact.failed)}`
                : `The server was stopped: ${String(fact.failed)}`;
          if ('code' in fact && 'signal' in fact)
            this.end ??= `The server process ended ${fact.signal === null ? `with code ${String(fact.code)}` : `by ${String(fact.signal)}`}`;
        },
        onOversized: () => undefined,
        onFlood: () => undefined,
      });
      control.on('data', (chunk: Buffer) => reader.push(chunk));
      control.on('error', (error) => this.onerror?.(error));
      this.guard?.once('close', () => reject(new Error(this.reason ?? 'The server could not be started')));
    });
  }

  private finish(reason: string): void {
    if (this.end === undefined && this.pid !== null) {
      // The guard itself was killed: its group is ours to end.
      try {
        process.kill(-this.pid, 'SIGKILL');
      } catch {
        // Nobody is left.
      }
    }
    this.end ??= reason;
    this.open.clear();
    this.onclose?.();
  }
}
