import { parseDuration } from '@ambit/capability';
import { httpApi } from '@ambit/contracts';
import type { Command } from 'commander';
import { take, type Context } from '../context.js';
import { principalOf } from '../principal.js';
import { UsageError } from '../usage-error.js';

interface CreateOptions {
  readonly for: string;
  readonly group?: readonly string[];
  readonly expires?: string;
}

/** `token create | list | revoke`. */
export function addTokenCommands(program: Command, context: Context): void {
  const token = program.command('token').description('who may call the API');
  token
    .command('create')
    .description('a token for somebody; it is shown this once')
    .argument('<name>', 'what you know it by')
    .requiredOption('--for <principal>', 'whom it speaks for, as in user:alice')
    .option('--group <id...>', 'groups that it belongs to')
    .option('--expires <duration>', 'how long it lives, as in 30d')
    .action(async (name: string, options: CreateOptions) => {
      const body = { name, principal: principalOf(options.for).id, groups: [...(options.group ?? [])], ...lifetime(options.expires) };
      const created = await (await context.client()).request(httpApi.createToken, { body });
      if (!context.wantsJson) context.io.complain(`token ${created.id} for ${created.principal}; this is the only time it is shown:\n`);
      context.show(created, () => `${created.token}\n`);
    });
  token
    .command('list')
    .description('tokens, without their secrets')
    .action(async () => {
      const columns = [
        ['ID', 'id'],
        ['NAME', 'name'],
        ['FOR', 'principal'],
        ['GROUPS', 'groups'],
        ['EXPIRES', 'expiresAt'],
        ['REVOKED', 'revokedAt'],
        ['LAST USED', 'lastUsedAt'],
      ] as const;
      context.list(await take((await context.client()).pages(httpApi.listTokens), 1_000), columns, 'there is no token');
    });
  token
    .command('revoke')
    .description('refuse a token from now on')
    .argument('<id>')
    .action(async (id: string) => {
      const answer = await (await context.client()).request(httpApi.revokeToken, { params: { id } });
      context.show(answer, () => `token ${id} is revoked\n`);
    });
}

/** How long a token shall live, as a request takes it. Throws a UsageError for what is no duration. */
export function lifetime(text: string | undefined): { expiresInMs?: number } {
  if (text === undefined) return {};
  const expiresInMs = parseDuration(text);
  if (expiresInMs === null) throw new UsageError(`"${text}" is no duration; write a whole number and s, m, h or d, as in 30d.`);
  return { expiresInMs };
}
