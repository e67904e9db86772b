import { randomUUID } from 'node:crypto';
import { hasEnded } from '@ambit/client';
import { httpApi } from '@ambit/contracts';
import type { Command } from 'commander';
import type { Context } from '../context.js';
import { eventWords } from '../event-words.js';
import { principalOf } from '../principal.js';
import { fields } from '../table.js';

interface SendOptions {
  readonly as?: string;
  readonly follow?: boolean;
  readonly session?: string;
  readonly thread?: string;
  readonly key?: string;
}

/** `send`, `run`, `follow`, `cancel`. */
export function addRunCommands(program: Command, context: Context): void {
  program
    .command('send')
    .description('send an agent a message for somebody')
    .argument('<agent>', 'which agent')
    .argument('<text>', 'what to say; - reads it from standard input')
    .option('--as <principal>', 'for whom, as in user:alice; yourself where it is left out')
    .option('--follow', 'show what happens until it ends')
    .option('--session <id>', 'go on in this session')
    .option('--thread <name>', 'keep it apart from other talk with this agent')
    .option('--key <key>', 'an idempotency key: the same key again is the same message')
    .action(async (agentId: string, text: string, options: SendOptions) => {
      const client = await context.client();
      const principal = principalOf(options.as ?? (await client.request(httpApi.whoAmI)).principal.id);
      const content = text === '-' ? await context.io.readInput() : text;
      const where = options.session === undefined ? { thread: options.thread } : { sessionId: options.session };
      const sent = await client.request(httpApi.postMessage, {
        // A private conversation is one of this person, so that nobody goes on in another's.
        body: { agentId, principal, content, adapter: 'cli', sceneId: principal.id, ...where },
        idempotencyKey: options.key ?? randomUUID(),
      });
      const words = () =>
        sent.runId === null
          ? `waits in session ${sent.sessionId} until the run there has ended\n`
          : `run ${sent.runId} in session ${sent.sessionId}\n`;
      if (options.follow !== true || sent.runId === null) return context.show(sent, words);
      context.tell(sent, words);
      return follow(context, sent.runId);
    });

  program
    .command('run')
    .description('show one run')
    .argument('<id>')
    .action(async (id: string) => {
      const found = await (await context.client()).request(httpApi.getRun, { params: { id } });
      context.show(found, () => fields(found));
    });

  program
    .command('follow')
    .description('show what happens in a run, from its beginning until it ends')
    .argument('<runId>')
    .option('--after <event>', 'only what came after this event')
    .action((runId: string, { after }: { readonly after?: string }) => follow(context, runId, after));

  program
    .command('cancel')
    .description('cancel a run')
    .argument('<runId>')
    .option('--reason <text>', 'why')
    .action(async (id: string, { reason }: { readonly reason?: string }) => {
      const answer = await (await context.client()).request(httpApi.cancelRun, { params: { id }, body: { reason } });
      context.show(answer, () => `${fields(answer)}`);
    });
}

async function follow(context: Context, runId: string, after?: string): Promise<void> {
  const client = await context.client();
  const options = { signal: context.io.signal, ...(after === undefined ? {} : { lastEventId: Number(after) }) };
  for await (const event of client.follow(runId, options)) {
    context.tell(event, () => eventWords(event, context));
    if (event.type === 'run.changed' && hasEnded(event.data.status) && event.data.status !== 'completed')
      throw new Error(`The run ended ${event.data.status}.`);
  }
}
