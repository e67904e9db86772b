import { text } from 'node:stream/consumers';
import { createInterface } from 'node:readline/promises';
import { run } from './run.js';

const stop = new AbortController();
process.once('SIGINT', () => stop.abort(new Error('interrupted')));
// A reader that has seen enough, as in `ambit audit | head`, is no failure.
process.stdout.on('error', () => process.exit(0));

process.exitCode = await run(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  isTerminal: process.stdout.isTTY === true,
  signal: stop.signal,
  write: (words) => void process.stdout.write(words),
  complain: (words) => void process.stderr.write(words),
  readInput: () => text(process.stdin),
  ask: async (question) => {
    if (process.stdin.isTTY !== true) return undefined;
    const terminal = createInterface({ input: process.stdin, output: process.stderr });
    try {
      return await terminal.question(question, { signal: stop.signal });
    } finally {
      terminal.close();
    }
  },
});
