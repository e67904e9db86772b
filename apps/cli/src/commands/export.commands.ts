import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { httpApi } from '@ambit/contracts';
import type { Command } from 'commander';
import { stringify } from 'yaml';
import { take, type Context } from '../context.js';
import { instructionsPath, manifestOf, type SetContent } from '../export.js';
import { UsageError } from '../usage-error.js';

interface ExportOptions {
  readonly set: string;
  readonly project: string;
  readonly output?: string;
}
const MOST = 10_000;

/** `export`: ambit.yaml of what is there. */
export function addExportCommand(program: Command, context: Context): void {
  program
    .command('export')
    .description('write ambit.yaml of what a set made; the files of skills and plugins are named, not contained')
    .requiredOption('--set <name>', 'which set')
    .option('--project <id>', 'in this project', 'default')
    .option('-o, --output <folder>', 'write ambit.yaml and the agents’ instructions there instead of showing them')
    .action(async ({ set, project, output }: ExportOptions) => {
      const content = await read(context, { set, project });
      const manifest = manifestOf(content);
      if (output === undefined) return context.show(manifest, () => stringify(manifest));
      const folder = resolve(context.io.cwd, output);
      const files = [
        { path: 'ambit.yaml', text: stringify(manifest) },
        ...content.agents
          .filter(({ instructions }) => instructions !== '')
          .map(({ id, instructions }) => ({ path: instructionsPath(id), text: instructions })),
      ];
      for (const { path, text } of files) {
        await mkdir(dirname(resolve(folder, path)), { recursive: true });
        await writeFile(resolve(folder, path), text, { flag: 'wx' }).catch((error: unknown) => {
          throw new UsageError(`${resolve(folder, path)} cannot be written (${String(error)}); nothing that is there is written over.`);
        });
      }
      return context.show({ written: files.map(({ path }) => path) }, () =>
        files.map(({ path }) => `wrote ${resolve(folder, path)}\n`).join(''),
      );
    });
}

async function read(context: Context, where: { readonly set: string; readonly project: string }): Promise<SetContent> {
  const client = await context.client();
  const query = { set: where.set, projectId: where.project };
  return {
    ...where,
    agents: await take(client.pages(httpApi.listAgents, { query }), MOST),
    servers: await take(client.pages(httpApi.listServers, { query }), MOST),
    secrets: await take(client.pages(httpApi.listSecrets, { query }), MOST),
    plugins: await take(client.pages(httpApi.listPlugins, { query }), MOST),
    skills: await take(client.pages(httpApi.listSkills, { query }), MOST),
    access: await take(client.pages(httpApi.listAccess, { query: { set: where.set } }), MOST),
    notify: await take(client.pages(httpApi.listNotify, { query }), MOST),
  };
}
