import { httpApi } from '@ambit/contracts';
import { Option, type Command } from 'commander';
import { take, type Context } from '../context.js';
import { fields } from '../table.js';

interface ListOptions {
  readonly parked?: boolean;
  readonly run?: string;
  readonly session?: string;
  readonly agent?: string;
  readonly limit: string;
}

/** `call list | show | resolve | cancel`. */
export function addCallCommands(program: Command, context: Context): void {
  const call = program.command('call').description('tool calls: by which rule, approved by whom, with what result');
  call
    .command('list')
    .description('calls, newest first')
    .option('--parked', 'only those whose end is unknown and waits for a person')
    .option('--run <id>', 'of this run and its resume runs')
    .option('--session <id>')
    .option('--agent <id>')
    .option('--limit <n>', 'at most so many', '100')
    .action(async ({ parked, run, session, agent, limit }: ListOptions) => {
      const query = { originRunId: run, sessionId: session, agentId: agent, ...(parked === true ? { parked: 'true' } : {}) };
      const calls = await take((await context.client()).pages(httpApi.listCalls, { query }), Number(limit) || 100);
      const columns = [
        ['OPERATION', 'operationId'],
        ['TOOL', 'tool'],
        ['STATUS', 'status'],
        ['FOR', 'principal'],
        ['RULE', 'rule'],
        ['APPROVED BY', 'approvedBy'],
        ['FAULT', 'fault.code'],
        ['AT', 'claimedAt'],
      ] as const;
      context.list(calls, columns, parked === true ? 'no call is parked' : 'no call yet');
    });
  call
    .command('show')
    .description('one call')
    .argument('<operation>')
    .action(async (operationId: string) => {
      const found = await (await context.client()).request(httpApi.getCall, { params: { operationId } });
      context.show(found, () => fields(found));
    });
  call
    .command('resolve')
    .description('say how a parked call ended, once you looked')
    .argument('<operation>')
    .addOption(new Option('--as <end>', 'how it ended').choices(['completed', 'failed']).makeOptionMandatory())
    .requiredOption('--note <text>', 'what you saw')
    .action(async (operationId: string, { as, note }: { readonly as: 'completed' | 'failed'; readonly note: string }) => {
      const resolved = await (await context.client()).request(httpApi.resolveCall, { params: { operationId }, body: { as, note } });
      context.show(resolved, () => `${resolved.tool}: ${as}, by your word\n`);
    });
  call
    .command('cancel')
    .description('stop one running call')
    .argument('<operation>')
    .action(async (operationId: string) => {
      const { state } = await (await context.client()).request(httpApi.cancelCall, { params: { operationId } });
      context.show({ state }, () => `${state}\n`);
    });
}
