import { httpApi } from '@ambit/contracts';
import type { Command } from 'commander';
import { take, type Context } from '../context.js';
import { table } from '../table.js';

interface AuditOptions {
  readonly owner?: string;
  readonly action?: string;
  readonly target?: string;
  readonly principal?: string;
  readonly since?: string;
  readonly limit: string;
}

/** `audit`, `audit verify`. */
export function addAuditCommands(program: Command, context: Context): void {
  const audit = program
    .command('audit')
    .description('who did what, for whom, by which rule; oldest first')
    .option('--owner <service>', 'kept by this service')
    .option('--action <action>', 'of this kind, as in agent.put')
    .option('--target <name>', 'done to this')
    .option('--principal <id>', 'for this one')
    .option('--since <time>', 'not before, as in 2026-01-31T00:00:00Z')
    .option('--limit <n>', 'at most so many', '100')
    .action(async ({ limit, ...query }: AuditOptions) => {
      const records = await take((await context.client()).pages(httpApi.listAudit, { query }), Number(limit) || 100);
      if (context.wantsJson) return records.forEach((record) => context.tell(record, () => ''));
      const columns = [
        ['AT', 'at'],
        ['OWNER', 'owner'],
        ['BY', 'actor.id'],
        ['FOR', 'principal.id'],
        ['ACTION', 'action'],
        ['TARGET', 'target'],
        ['RULE', 'rule'],
        ['REASON', 'reason'],
      ] as const;
      return context.io.write(records.length === 0 ? 'no record fits\n' : table(columns, records, context.paint.bold));
    });

  audit
    .command('verify')
    .description('whether every owner’s chain of records is unbroken')
    .action(async () => {
      const verdict = await (await context.client()).request(httpApi.verifyAudit);
      const columns = [
        ['OWNER', 'owner'],
        ['RECORDS', 'records'],
        ['INTACT', 'intact'],
        ['PROBLEM', 'problem'],
      ] as const;
      context.show(verdict, () => table(columns, verdict.owners, context.paint.bold));
      if (!verdict.intact) throw new Error('A chain is broken: records were changed or taken out.');
    });
}
