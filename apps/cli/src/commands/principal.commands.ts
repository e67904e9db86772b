import { httpApi } from '@ambit/contracts';
import type { Command } from 'commander';
import type { Context } from '../context.js';

/** `principal erase`. */
export function addPrincipalCommands(program: Command, context: Context): void {
  const principal = program.command('principal').description('people and applications that something is done for');
  principal
    .command('erase')
    .description('remove what it said, the arguments of its calls, its names, tokens and roles; audit keeps ids and digests')
    .argument('<id>', 'as in user:alice')
    .requiredOption('--yes', 'it cannot be undone')
    .action(async (id: string) => {
      const erased = await (await context.client()).request(httpApi.erasePrincipal, { params: { id } });
      const { runs, entries, sessions, calls, artifacts, tokens, grants } = erased;
      context.show(
        erased,
        () =>
          `${id} is erased: ${entries} entries of ${sessions} sessions, arguments of ${calls} calls, ${artifacts} artifacts; ended ${runs} runs, ${tokens} tokens, ${grants} roles\n`,
      );
    });
}
