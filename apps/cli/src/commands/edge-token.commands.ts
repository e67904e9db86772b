import { httpApi, type EdgeNames } from '@ambit/contracts';
import { Option, type Command } from 'commander';
import { take, type Context } from '../context.js';
import { principalOf } from '../principal.js';
import { lifetime } from './token.commands.js';

interface CreateOptions {
  readonly agent: string;
  readonly for: string;
  readonly session?: string;
  readonly names?: EdgeNames;
  readonly expires?: string;
}

/** `edge-token create | list | revoke`. */
export function addEdgeTokenCommands(program: Command, context: Context): void {
  const token = program.command('edge-token').description('which MCP clients may use an agent’s tools');
  token
    .command('create')
    .description('a token for an MCP client; it is shown this once')
    .argument('<name>', 'what you know it by')
    .requiredOption('--agent <id>', 'whose tools the client sees')
    .requiredOption('--for <principal>', 'whom it works for, as in user:alice')
    .option('--session <id>', 'a session of that agent and principal; one of its own where it is left out')
    .addOption(new Option('--names <which>', 'names of tools: qualified, or plain as the servers say them').choices(['qualified', 'plain']))
    .option('--expires <duration>', 'how long it lives, as in 12h; 30 days where it is left out')
    .action(async (name: string, options: CreateOptions) => {
      const { agent: agentId, session: sessionId, names } = options;
      const body = {
        name,
        agentId,
        principal: principalOf(options.for).id,
        ...(sessionId === undefined ? {} : { sessionId }),
        ...(names === undefined ? {} : { names }),
        ...lifetime(options.expires),
      };
      const created = await (await context.client()).request(httpApi.createEdgeToken, { body });
      if (!context.wantsJson)
        context.io.complain(`token ${created.id} for ${created.agentId} and ${created.principal}; this is the only time it is shown:\n`);
      context.show(created, () => `${created.token}\n`);
    });
  token
    .command('list')
    .description('tokens of MCP clients, without their secrets')
    .option('--agent <id>', 'of this agent')
    .action(async ({ agent }: { readonly agent?: string }) => {
      const columns = [
        ['ID', 'id'],
        ['NAME', 'name'],
        ['AGENT', 'agentId'],
        ['FOR', 'principal'],
        ['SESSION', 'sessionId'],
        ['EXPIRES', 'expiresAt'],
        ['REVOKED', 'revokedAt'],
        ['LAST USED', 'lastUsedAt'],
      ] as const;
      const all = (await context.client()).pages(httpApi.listEdgeTokens, { query: { agentId: agent } });
      context.list(await take(all, 1_000), columns, 'there is no such token');
    });
  token
    .command('revoke')
    .description('refuse a token from now on')
    .argument('<id>')
    .action(async (id: string) => {
      const answer = await (await context.client()).request(httpApi.revokeEdgeToken, { params: { id } });
      context.show(answer, () => `token ${id} is revoked\n`);
    });
}
