import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { AmbitClient } from '@ambit/client';
import { readFolder, readPlainFile } from '@ambit/client/manifest';
import { httpApi, type FileEntry, type Plugin } from '@ambit/contracts';
import type { Command } from 'commander';
import type { Context } from '../context.js';
import { cell } from '../table.js';

interface InstallOptions {
  readonly unsigned?: boolean;
  readonly enable?: boolean;
  readonly project: string;
}
const ARCHIVE_BYTES = 200 * 1024 * 1024;

/** `plugin install | enable | disable | uninstall`. */
export function addPluginCommands(program: Command, context: Context): void {
  const plugin = program.command('plugin').description('packages of servers and skills');
  plugin
    .command('install')
    .description('verify a package and install it, switched off unless --enable')
    .argument('<source>', 'a folder, or a zip of one')
    .option('--unsigned', 'take it without a publisher’s signature')
    .option('--enable', 'switch it on at once')
    .option('--project <id>', 'in this project', 'default')
    .action(async (source: string, options: InstallOptions) => {
      const client = await context.client();
      const content = await send(client, resolve(context.io.cwd, source));
      const unsigned = options.unsigned === true ? 'allow' : 'refuse';
      const installed = await client.request(httpApi.installPlugin, { body: { ...content, projectId: options.project, unsigned } });
      const now = options.enable === true ? await client.request(httpApi.enablePlugin, { params: { id: installed.id } }) : installed;
      context.show(now, () => words(now));
    });
  for (const [verb, route, description] of [
    ['enable', httpApi.enablePlugin, 'contribute everything, or nothing where a part fails'],
    ['disable', httpApi.disablePlugin, 'take everything away, everywhere, and then answer'],
  ] as const) {
    plugin
      .command(verb)
      .description(description)
      .argument('<id>')
      .action(async (id: string) => {
        const now = await (await context.client()).request(route, { params: { id } });
        context.show(now, () => words(now));
      });
  }
  plugin
    .command('uninstall')
    .description('disable and forget')
    .argument('<id>')
    .action(async (id: string) => {
      const answer = await (await context.client()).request(httpApi.uninstallPlugin, { params: { id } });
      context.show(answer, () => `${id} is uninstalled\n`);
    });
}

async function send(client: AmbitClient, source: string): Promise<{ files: FileEntry[] } | { archive: string }> {
  if ((await stat(source).catch(() => undefined))?.isFile() === true)
    return { archive: await client.upload('plugin', (await readPlainFile(source, ARCHIVE_BYTES)).bytes) };
  const files = await readFolder(source);
  for (const { bytes } of files) await client.upload('plugin', bytes);
  return { files: files.map(({ entry }) => entry) };
}

function words({ id, version, state, signed, contributes, warnings, reason }: Plugin): string {
  return [
    `plugin ${id} ${version}: ${state}${reason === null ? '' : ` (${cell(reason)})`}, ${signed}\n`,
    `  servers: ${cell(contributes.servers)}; skills: ${cell(contributes.skills)}\n`,
    ...warnings.map((warning) => `  warning: ${cell(warning)}\n`),
  ].join('');
}
