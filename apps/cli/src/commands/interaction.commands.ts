import { httpApi } from '@ambit/contracts';
import type { Command } from 'commander';
import { take, type Context } from '../context.js';
import { UsageError } from '../usage-error.js';

const MOST = 500;

/** `inbox`, `approve`, `deny`, `answer`: what waits for a person, and the person's word. */
export function addInteractionCommands(program: Command, context: Context): void {
  program
    .command('inbox')
    .description('what waits for a decision, oldest first')
    .option('--session <id>', 'of this session')
    .action(async ({ session }: { readonly session?: string }) => {
      const pages = (await context.client()).pages(httpApi.listInteractions, { query: { status: 'pending', sessionId: session } });
      const columns = [
        ['ID', 'id'],
        ['AGENT', 'agentId'],
        ['FOR', 'principal.id'],
        ['KIND', 'kind'],
        ['TOOL', 'tool'],
        ['WITH', 'argumentsPreview'],
        ['RULE', 'rule'],
        ['AFTER', 'blockedBy'],
        ['EXPIRES', 'expiresAt'],
      ] as const;
      context.list(await take(pages, MOST), columns, 'nothing waits for a decision');
    });

  for (const decision of ['allow', 'deny'] as const) {
    program
      .command(decision === 'allow' ? 'approve' : 'deny')
      .description(decision === 'allow' ? 'let the call that waits happen' : 'refuse the call that waits')
      .argument('<id>', 'an interaction, as inbox lists it')
      .option('--reason <text>', 'why, for the record')
      .action(async (id: string, { reason }: { readonly reason?: string }) => {
        const decided = await (await context.client()).request(httpApi.decideInteraction, { params: { id }, body: { decision, reason } });
        context.show(decided, () => `${decided.tool}: ${decided.status} by ${decided.decidedBy?.id ?? 'you'}\n`);
      });
  }

  program
    .command('answer')
    .description('answer an agent’s question')
    .argument('<id>', 'an interaction, as inbox lists it')
    .argument('[text]', 'in your own words')
    .option('--select <label...>', 'one or more of the options')
    .action(async (id: string, text: string | undefined, { select = [] }: { readonly select?: string[] }) => {
      if (text === undefined && select.length === 0)
        throw new UsageError('What is the answer? Give a text, or --select one of the options.');
      const body = { decision: 'answer' as const, answer: { selected: select, text: text ?? '' } };
      const decided = await (await context.client()).request(httpApi.decideInteraction, { params: { id }, body });
      context.show(decided, () => `${decided.status} by ${decided.decidedBy?.id ?? 'you'}\n`);
    });
}
