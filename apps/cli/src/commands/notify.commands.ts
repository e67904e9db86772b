import { DeliveryStatus, httpApi } from '@ambit/contracts';
import { Option, type Command } from 'commander';
import { take, type Context } from '../context.js';

interface DeliveriesOptions {
  readonly status?: DeliveryStatus;
  readonly project: string;
  readonly limit: string;
}

/** `notify deliveries`. */
export function addNotifyCommands(program: Command, context: Context): void {
  const notify = program.command('notify').description('webhooks');
  notify
    .command('deliveries')
    .description('what a webhook was told or is to be told, newest first')
    .argument('<webhook>', 'its address or id, as `ambit get notify` shows them')
    .addOption(new Option('--status <status>', 'only these').choices(DeliveryStatus.options))
    .option('--project <id>', 'in this project', 'default')
    .option('--limit <n>', 'at most so many', '50')
    .action(async (webhook: string, { status, project, limit }: DeliveriesOptions) => {
      const client = await context.client();
      for await (const sink of client.pages(httpApi.listNotify, { query: { projectId: project } })) {
        if (sink.id !== webhook && sink.webhook.url !== webhook) continue;
        const told = client.pages(httpApi.listDeliveries, { params: { id: sink.id }, query: { status } });
        return context.list(await take(told, Number(limit) || 50), COLUMNS, 'it was told nothing');
      }
      throw new Error(`There is no webhook ${webhook} in project ${project}; \`ambit get notify\` lists what there is.`);
    });
}

const COLUMNS = [
  ['EVENT', 'event'],
  ['ABOUT', 'about'],
  ['STATUS', 'status'],
  ['ATTEMPTS', 'attempts'],
  ['SINCE', 'createdAt'],
  ['NEXT', 'nextAt'],
  ['LAST ERROR', 'lastError'],
] as const;
