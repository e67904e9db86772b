import { CommanderError } from 'commander';
import { Context } from './context.js';
import { tellFailure } from './failure.js';
import type { Io } from './io.js';
import { newProgram } from './program.js';
import { UsageError } from './usage-error.js';
import { addCommands } from './commands/all.js';

/** Runs one command and gives its exit code: 0 done, 1 refused or failed, 2 not written as it should be. */
export async function run(args: readonly string[], io: Io): Promise<number> {
  const program = newProgram(io);
  const context = new Context(io, program);
  addCommands(program, context);
  try {
    await program.parseAsync([...args], { from: 'user' });
    return 0;
  } catch (error) {
    if (!(error instanceof CommanderError)) return tellFailure(context, error);
    // Help that was asked for is an answer; help instead of an answer is not.
    if (error.exitCode === 0) return 0;
    if (context.wantsJson) return tellFailure(context, new UsageError(error.message.replace(/^error: /, '')));
    return 2;
  }
}
