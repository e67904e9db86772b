import { httpApi } from '@ambit/contracts';
import type { Command } from 'commander';
import type { Context } from '../context.js';
import { table } from '../table.js';

/** `status`: which services answer, and who one is. */
export function addStatusCommand(program: Command, context: Context): void {
  program
    .command('status')
    .description('which services answer, what is isolated, and who you are')
    .action(async () => {
      const client = await context.client();
      const [status, me] = await Promise.all([client.request(httpApi.status), client.request(httpApi.whoAmI)]);
      context.show({ url: client.url, ...status, you: me }, () =>
        [
          `Ambit ${status.version} at ${client.url}; you are ${me.principal.id}\n`,
          table(
            [
              ['SERVICE', 'name'],
              ['INSTANCES', 'instances'],
              ['VERSION', 'version'],
            ],
            status.services,
            context.paint.bold,
          ),
          status.workerIsolation
            ? 'workers are isolated: each holds credentials of its own\n'
            : 'workers are NOT isolated from services: this installation holds no signing key\n',
        ].join(''),
      );
    });
}
