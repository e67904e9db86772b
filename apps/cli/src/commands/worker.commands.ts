import { httpApi } from '@ambit/contracts';
import type { Command } from 'commander';
import { take, type Context } from '../context.js';

/** `worker create | list | revoke`. */
export function addWorkerCommands(program: Command, context: Context): void {
  const worker = program.command('worker').description('who may take the runs of an agent');
  worker
    .command('create')
    .description('credentials for a worker, on standard output: `ambit worker create demo --agent guide > guide.creds`')
    .argument('<name>', 'what you know it by')
    .requiredOption('--agent <id>', 'whose runs it takes')
    .option('--pool <name...>', 'pools of runs that it takes; shared where it is left out')
    .action(async (name: string, { agent, pool }: { readonly agent: string; readonly pool?: string[] }) => {
      const created = await (
        await context.client()
      ).request(httpApi.createWorker, { body: { name, agentId: agent, ...(pool === undefined ? {} : { pools: pool }) } });
      if (!context.wantsJson)
        context.io.complain(
          `worker ${created.name} (${created.id}) of ${created.agentId}, pools ${created.pools.join(', ')}; shown this once\n`,
        );
      context.show(created, () => `${created.credentials.trimEnd()}\n`);
    });
  worker
    .command('list')
    .description('worker credentials')
    .option('--agent <id>', 'of this agent')
    .action(async ({ agent }: { readonly agent?: string }) => {
      const columns = [
        ['ID', 'id'],
        ['NAME', 'name'],
        ['AGENT', 'agentId'],
        ['POOLS', 'pools'],
        ['EXPIRES', 'expiresAt'],
        ['REVOKED', 'revokedAt'],
      ] as const;
      context.list(
        await take((await context.client()).pages(httpApi.listWorkers, { query: { agentId: agent } }), 1_000),
        columns,
        'there is no worker credential',
      );
    });
  worker
    .command('revoke')
    .description('end a worker’s credentials; answers once the servers know')
    .argument('<id>')
    .action(async (id: string) => {
      const answer = await (await context.client()).request(httpApi.revokeWorker, { params: { id } });
      context.show(answer, () => `worker ${id} is revoked\n`);
    });
}
