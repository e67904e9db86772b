import { httpApi } from '@ambit/contracts';
import { Option, type Command } from 'commander';
import type { Context } from '../context.js';
import { UsageError } from '../usage-error.js';

interface SetOptions {
  readonly from: 'env' | 'file' | 'store';
  readonly key?: string;
  readonly project: string;
}

/** `secret set | remove`. */
export function addSecretCommands(program: Command, context: Context): void {
  const secret = program.command('secret').description('names that configuration refers to; a value is never shown again');
  secret
    .command('set')
    .description('declare a secret; with --from store, its value is read from standard input')
    .argument('<name>')
    .addOption(new Option('--from <source>', 'where the value is').choices(['store', 'env', 'file']).default('store'))
    .option('--key <key>', 'the variable or the path, with --from env or file')
    .option('--project <id>', 'in this project', 'default')
    .action(async (name: string, { from, key, project }: SetOptions) => {
      if ((from === 'store') !== (key === undefined))
        throw new UsageError('--key belongs to --from env and --from file, which need it; store reads a value.');
      const value = from === 'store' ? { value: (await context.io.readInput()).replace(/\r?\n$/, '') } : {};
      if (value.value === '')
        throw new UsageError('There is no value on standard input; try `printf %s "$VALUE" | ambit secret set NAME`.');
      const put = await (
        await context.client()
      ).request(httpApi.putSecret, { params: { name }, body: { projectId: project, from, key: key ?? null, ...value } });
      context.show(put, () => `secret ${put.name} is set, from ${put.from}\n`);
    });
  secret
    .command('remove')
    .description('remove a secret that no server names')
    .argument('<name>')
    .option('--project <id>', 'in this project', 'default')
    .action(async (name: string, { project }: { readonly project: string }) => {
      const answer = await (await context.client()).request(httpApi.deleteSecret, { params: { name }, query: { projectId: project } });
      context.show(answer, () => `secret ${name} is removed\n`);
    });
}
