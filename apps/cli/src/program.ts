import { Command } from 'commander';
import type { Io } from './io.js';

/** The program without its commands; whatever it says goes through `io`. */
export function newProgram(io: Io): Command {
  return new Command('ambit')
    .description('What AI agents may do, decided and recorded: the command line of an Ambit installation')
    .version('0.1.0')
    .option('--url <url>', 'where the API is (AMBIT_URL; else the stack that runs in this folder)')
    .option('--token <token>', 'who you are (AMBIT_TOKEN, which does not show in process lists)')
    .option('--json', 'answer in JSON: one document, or a line for each event of a stream')
    .showHelpAfterError('(--help says how)')
    .configureHelp({ helpWidth: 100, sortSubcommands: false, showGlobalOptions: false })
    .configureOutput({
      writeOut: (text) => io.write(text),
      writeErr: (text) => io.complain(text),
      outputError: (text, write) => write(text.replace(/^error: /, 'ambit: ')),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .exitOverride();
}
