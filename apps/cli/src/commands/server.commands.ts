import type { AmbitClient } from '@ambit/client';
import { httpApi, Uuid, type Server } from '@ambit/contracts';
import type { Command } from 'commander';
import type { Context } from '../context.js';
import { fields } from '../table.js';
import { UsageError } from '../usage-error.js';

interface AddOptions {
  readonly sse?: boolean;
  readonly env?: readonly string[];
  readonly header?: readonly string[];
  readonly readOnly?: readonly string[];
  readonly project: string;
}

/** `server add | test | remove`. */
export function addServerCommands(program: Command, context: Context): void {
  const server = program.command('server').description('MCP servers');
  server
    .command('add')
    .description('add or change a server: `server add wiki https://wiki.example/mcp`, or `server add files -- npx some-server /data`')
    .argument('<name>', 'what the tools are named after')
    .argument('<reach...>', 'the address of a server that speaks MCP over HTTP, or after -- a program that speaks it over stdio')
    .option('--sse', 'the server at the address speaks the older SSE form')
    .option('--env <NAME=value...>', 'a variable for the program; NAME=secret:<name> resolves a secret')
    .option('--header <name=value...>', 'a header for the address; name=secret:<name> resolves a secret')
    .option('--read-only <tool...>', 'tools that change nothing, by your word')
    .option('--project <id>', 'in this project', 'default')
    .action(async (slug: string, reach: readonly string[], options: AddOptions) => {
      const body = {
        projectId: options.project,
        transport: transportOf(options, reach),
        readOnly: [...(options.readOnly ?? [])],
      };
      const put = await (await context.client()).request(httpApi.putServer, { params: { slug }, body });
      context.show(put, () => `server ${put.slug} (${put.id}), generation ${put.configGeneration}: ${put.state}\n`);
    });
  server
    .command('test')
    .description('connect now and say how it went')
    .argument('<name>', 'a server, by name or id')
    .option('--project <id>', 'in this project', 'default')
    .action(async (name: string, { project }: { readonly project: string }) => {
      const client = await context.client();
      const tested = await client.request(httpApi.testServer, { params: { id: (await find(client, name, project)).id } });
      context.show(tested, () =>
        fields({
          server: tested.slug,
          state: tested.state,
          reason: tested.reason,
          tools: tested.tools,
          protocol: tested.protocol,
          runsAs: tested.runsAs,
        }),
      );
      if (tested.state !== 'connected')
        throw new Error(`${tested.slug} is ${tested.state}${tested.reason === null ? '' : `: ${tested.reason}`}.`);
    });
  server
    .command('remove')
    .description('remove a server and stop it')
    .argument('<name>', 'a server, by name or id')
    .option('--project <id>', 'in this project', 'default')
    .action(async (name: string, { project }: { readonly project: string }) => {
      const client = await context.client();
      const answer = await client.request(httpApi.deleteServer, { params: { id: (await find(client, name, project)).id } });
      context.show(answer, () => `${name} is removed\n`);
    });
}

async function find(client: AmbitClient, name: string, projectId: string): Promise<Server> {
  if (Uuid.safeParse(name).success) return client.request(httpApi.getServer, { params: { id: name } });
  for await (const server of client.pages(httpApi.listServers, { query: { projectId } })) if (server.slug === name) return server;
  throw new Error(`There is no server "${name}" in project ${projectId}; \`ambit get server\` lists what there is.`);
}

function transportOf(options: AddOptions, [first = '', ...args]: readonly string[]) {
  if (!/^https?:/i.test(first)) {
    if (options.header !== undefined || options.sse === true)
      throw new UsageError('--header and --sse belong to an address; a program takes --env.');
    return { type: 'stdio' as const, command: first, args, env: valuesOf(options.env) };
  }
  if (options.env !== undefined || args.length > 0)
    throw new UsageError('An address takes --header; --env and arguments belong to a program.');
  return { type: options.sse === true ? ('sse' as const) : ('http' as const), url: first, headers: valuesOf(options.header) };
}

function valuesOf(pairs: readonly string[] = []): Record<string, string | { secret: string }> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf('=');
      if (at < 1) throw new UsageError(`"${pair}" has no name; write NAME=value or NAME=secret:<name>.`);
      const value = pair.slice(at + 1);
      return [pair.slice(0, at), value.startsWith('secret:') ? { secret: value.slice('secret:'.length) } : value];
    }),
  );
}
