import { Argument, type Command } from 'commander';
import { take, type Context } from '../context.js';
import { nouns, type Filters, type Noun } from '../nouns.js';
import { fields } from '../table.js';

interface GetOptions {
  readonly agent?: string;
  readonly project?: string;
  readonly set?: string;
  readonly session?: string;
  readonly limit: string;
}

/** `get <noun> [name]`. */
export function addGetCommand(program: Command, context: Context): void {
  program
    .command('get')
    .description('list what there is of a noun, or show one by its name')
    .addArgument(new Argument('<noun>', 'what to look at').choices(Object.keys(nouns)))
    .argument('[name]', 'one of them')
    .option('--agent <id>', 'of this agent')
    .option('--project <id>', 'of this project')
    .option('--set <name>', 'applied by this set')
    .option('--session <id>', 'of this session')
    .option('--limit <n>', 'at most so many', '200')
    .action(async (name: string, one: string | undefined, options: GetOptions) => {
      const noun = nouns[name];
      if (noun === undefined) return;
      const filters: Filters = { agentId: options.agent, projectId: options.project, set: options.set, sessionId: options.session };
      if (one === undefined) {
        const client = await context.client();
        context.list(await take(noun.list(client, filters), Number(options.limit) || 200), noun.columns, `there is no ${name}`);
        return;
      }
      const found = await findOne(context, noun, { name: one, filters });
      if (found === undefined) throw new Error(`There is no ${name} "${one}"; \`ambit get ${name}\` lists what there is.`);
      context.show(found, () => fields(found));
    });
}

async function findOne(context: Context, noun: Noun, wanted: { readonly name: string; readonly filters: Filters }): Promise<unknown> {
  const client = await context.client();
  if (noun.one !== undefined) return noun.one(client, wanted.name);
  for await (const item of noun.list(client, wanted.filters))
    if (typeof item === 'object' && item !== null && noun.names.some((field) => Reflect.get(item, field) === wanted.name)) return item;
  return undefined;
}
