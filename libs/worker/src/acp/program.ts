import { ndJsonStream, type Stream } from '@agentclientprotocol/sdk';
import { Readable, Writable } from 'node:stream';
import { environmentOf, type CommandOptions } from '../workspace/command.js';
import { startGroup, type Group } from '../workspace/group.js';
import type { Guard } from '../workspace/guard.js';
import type { OpenFolder } from '../workspace/open-folder.js';
import { Output } from '../workspace/output.js';

const MESSAGE_BYTES = 16 * 1024 * 1024;
const COMPLAINT_BYTES = 2_000;

/** An agent's program, spoken to over its standard input and output. */
export interface Program {
  readonly stream: Stream;
  readonly exited: Group['exited'];
  /** The end of what it wrote to its error output. */
  complaint(): string;
  end(): Promise<void>;
}

/** Starts an agent in a session's folder, in a process group that does not outlive this worker. */
export async function startProgram(
  argv: readonly string[],
  at: { readonly folder: OpenFolder; readonly mark: string; readonly options: CommandOptions },
  guard: Guard,
): Promise<Program> {
  const { folder, mark, options } = at;
  const { path } = folder.place;
  const { child, exited, end } = await startGroup(
    {
      argv: [...options.launcher, ...argv],
      cwd: folder.here,
      env: environmentOf(options.env, { home: options.env['HOME'] ?? path, folder: path }),
      owner: options.owner,
      mark,
      streams: 'apart',
    },
    guard,
  );
  const { stdin, stdout, stderr } = child;
  if (stdin === null || stdout === null || stderr === null) throw new Error('the agent has no streams');
  stdin.on('error', () => undefined);
  const errors = new Output(COMPLAINT_BYTES, 'end');
  stderr.on('data', (chunk: Buffer) => errors.push(chunk));
  return {
    stream: ndJsonStream(Writable.toWeb(stdin), Readable.toWeb(stdout), { maxMessageBytes: MESSAGE_BYTES }),
    exited,
    complaint: () => errors.tail(COMPLAINT_BYTES),
    end,
  };
}
