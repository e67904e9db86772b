import type { AmbitClient } from '@ambit/client';
import { httpApi, Uuid, type Server } from '@ambit/contracts';
import type { Command } from 'commander';
import { setTimeout as wait } from 'node:timers/promises';
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

/** `server add | test | auth | enable | disable | held | accept | remove`. */
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
          authorization: tested.authorization.state,
          tools: tested.tools,
          protocol: tested.protocol,
          runsAs: tested.runsAs,
        }),
      );
      if (tested.state !== 'connected')
        throw new Error(`${tested.slug} is ${tested.state}${tested.reason === null ? '' : `: ${tested.reason}`}.`);
    });
  server
    .command('auth')
    .description('sign in to a server: prints the address to open in a browser')
    .argument('<name>', 'a server, by name or id')
    .option('--for <subject>', 'shared, agent:<id>, or a principal; as the server is configured, without it')
    .option('--wait', 'stay until the sign-in is finished')
    .option('--callback <url>', 'the address that the browser ended at, where it could not open it')
    .option('--list', 'whose credentials the server has')
    .option('--sign-out <subject>', 'forget the credentials of a subject')
    .option('--project <id>', 'in this project', 'default')
    .action(async (name: string, options: AuthOptions) => authorize(context, name, options));
  for (const on of [true, false])
    server
      .command(on ? 'enable' : 'disable')
      .description(
        on ? 'switch a server on that was switched off by hand' : 'switch a server off: it stays off, also when its plugin comes back',
      )
      .argument('<name>', 'a server, by name or id')
      .option('--project <id>', 'in this project', 'default')
      .action(async (name: string, { project }: { readonly project: string }) => {
        const client = await context.client();
        const { id } = await find(client, name, project);
        const switched = await client.request(on ? httpApi.enableServer : httpApi.disableServer, { params: { id } });
        context.show(switched, () => `${switched.slug} is ${switched.state}\n`);
      });
  server
    .command('held')
    .description('tools that became others since they were accepted (servers with holdChanges); of one of them, what it was and is')
    .argument('<name>', 'a server, by name or id')
    .argument('[tool]', 'one of them')
    .option('--project <id>', 'in this project', 'default')
    .action(async (name: string, tool: string | undefined, { project }: { readonly project: string }) => {
      const client = await context.client();
      const { id, held } = await find(client, name, project);
      if (tool === undefined) {
        context.show(held, () => held.map((one) => `${one.tool}  ${one.digest}\n`).join('') || 'nothing is held back\n');
        return;
      }
      const found = await client.request(httpApi.getHeldTool, { params: { id }, query: { tool } });
      context.show(found, () => fields(found));
    });
  server
    .command('accept')
    .description('let agents use a tool that is held back, as it is now')
    .argument('<name>', 'a server, by name or id')
    .argument('<tool>', 'the tool')
    .requiredOption('--digest <sha256>', 'what `server held` shows: exactly this is accepted')
    .option('--project <id>', 'in this project', 'default')
    .action(async (name: string, tool: string, { digest, project }: { readonly digest: string; readonly project: string }) => {
      const client = await context.client();
      const { id } = await find(client, name, project);
      const accepted = await client.request(httpApi.acceptTool, { params: { id }, body: { tool, digest } });
      context.show(accepted, () => `${tool} of ${accepted.slug} is accepted; ${accepted.held.length} more held back\n`);
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

interface AuthOptions {
  readonly for?: string;
  readonly wait?: boolean;
  readonly callback?: string;
  readonly list?: boolean;
  readonly signOut?: string;
  readonly project: string;
}

const POLL_MS = 1_000;

/** Never opens a browser: whoever signs in may sit at another machine. */
async function authorize(context: Context, name: string, options: AuthOptions): Promise<void> {
  const client = await context.client();
  const { id, slug } = await find(client, name, options.project);
  if (options.list === true) {
    const { items } = await client.request(httpApi.listAuthorizations, { params: { id } });
    return context.show(items, () =>
      items.map(({ subject, state, reason }) => `${subject}: ${state}${reason === null ? '' : ` (${reason})`}\n`).join(''),
    );
  }
  if (options.signOut !== undefined) {
    const answer = await client.request(httpApi.removeAuthorization, { params: { id, subject: options.signOut } });
    return context.show(answer, () => `${slug}: ${answer.removed ? 'signed out' : 'nobody was signed in as that'}\n`);
  }
  if (options.callback !== undefined) {
    const done = await client.request(httpApi.completeAuthorization, { body: { callback: options.callback } });
    return context.show(done, () => `${done.slug}: signed in for ${done.subject}\n`);
  }
  const started = await client.request(httpApi.authorizeServer, {
    params: { id },
    body: options.for === undefined ? {} : { subject: options.for },
  });
  context.show(started, () => `Open this address until ${started.expiresAt}:\n${started.url}\n`);
  if (options.wait !== true) return;
  for (;;) {
    const { authorization } = await client.request(httpApi.getServer, { params: { id } });
    if (authorization.state === 'authenticated') return;
    if (authorization.state !== 'authenticating')
      throw new Error(`${slug} is ${authorization.state}${authorization.reason === null ? '' : `: ${authorization.reason}`}.`);
    await wait(POLL_MS);
  }
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
