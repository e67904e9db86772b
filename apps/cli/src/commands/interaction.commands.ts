import { httpApi, JsonObject } from '@ambit/contracts';
import type { Command } from 'commander';
import { take, type Context } from '../context.js';
import { UsageError } from '../usage-error.js';

const MOST = 500;

interface AnswerOptions {
  readonly select?: string[];
  readonly content?: string;
}

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
    .description('answer an agent’s question, or what a server asks for within a call')
    .argument('<id>', 'an interaction, as inbox lists it')
    .argument('[text]', 'in your own words')
    .option('--select <label...>', 'one or more of the options')
    .option('--content <json>', 'the fields of a form that a server asks for, or the completion that it wants')
    .action(async (id: string, text: string | undefined, { select = [], content }: AnswerOptions) => {
      if (text === undefined && select.length === 0 && content === undefined)
        throw new UsageError('What is the answer? Give a text, --select one of the options, or --content for a form.');
      const fields = content === undefined ? {} : { content: objectOf(content) };
      const body = { decision: 'answer' as const, answer: { selected: select, text: text ?? '', ...fields } };
      const decided = await (await context.client()).request(httpApi.decideInteraction, { params: { id }, body });
      context.show(decided, () => `${decided.status} by ${decided.decidedBy?.id ?? 'you'}\n`);
    });
}

function objectOf(text: string): JsonObject {
  try {
    return JsonObject.parse(JSON.parse(text));
  } catch {
    throw new UsageError('--content takes a JSON object, as in \'{"name": "Ada"}\'.');
  }
}
