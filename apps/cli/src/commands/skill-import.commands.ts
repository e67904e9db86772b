import { lstat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { AmbitClient } from '@ambit/client';
import { readFolder, readPlainFile } from '@ambit/client/manifest';
import {
  httpApi,
  ImportFormat,
  importPlaces,
  ImportStrategy,
  type ImportCandidate,
  type ImportChoice,
  type ImportSource,
} from '@ambit/contracts';
import { InvalidArgumentError, Option, type Command } from 'commander';
import type { Context } from '../context.js';
import { importWords, previewWords } from '../import-words.js';
import { UsageError } from '../usage-error.js';

interface Options {
  readonly from: From;
  readonly agent: string;
  readonly preview?: boolean;
  readonly only?: readonly string[];
  readonly onConflict: ImportChoice['onConflict'];
  readonly as?: string;
}
type From = { readonly agentId: string } | { readonly format: ImportFormat };
interface Brought {
  readonly source: ImportSource;
  /** Files that were not sent. */
  readonly leftOut: readonly string[];
}
/** The server takes no larger import. */
const IMPORT_BYTES = 50 * 1024 * 1024;

/** `skill import`. */
export function addSkillImport(skill: Command, context: Context): void {
  skill
    .command('import')
    .description('give an agent skills that another agent or another tool has')
    .argument('[source]', 'a folder, a zip or a tar.gz: the skills, or the home or project where the tool keeps them')
    .addOption(
      new Option('--from <source>', `agent:<id>, or whose layout it is: ${ImportFormat.options.join(', ')}`)
        .argParser(readFrom)
        .default({ format: 'agents' } satisfies From, 'agents'),
    )
    .requiredOption('--agent <id>', 'the agent that gets them')
    .option('--preview', 'show what would happen, and change nothing')
    .option('--only <name...>', 'of all skills these')
    .addOption(
      new Option('--on-conflict <how>', 'where the agent has a skill of the name')
        .choices(ImportStrategy.options)
        .default('skip' satisfies ImportChoice['onConflict']),
    )
    .option('--as <name>', 'for rename, of one skill: under this name where it is free')
    .action(async (path: string | undefined, options: Options) => {
      if (options.as !== undefined && (options.onConflict !== 'rename' || options.only?.length !== 1))
        throw new UsageError('--as goes with --on-conflict rename and one name after --only.');
      const client = await context.client();
      const { source, leftOut } = await bring(client, context, { path, from: options.from });
      const body = { agentId: options.agent, source };
      const seen = await client.request(httpApi.previewImport, {
        body: { ...body, ...(options.only === undefined ? {} : { names: [...options.only] }) },
      });
      const preview = { ...seen, dropped: [...seen.dropped, ...leftOut] };
      const missing = (options.only ?? []).filter((name) => !seen.skills.some((one) => one.name === name));
      if (missing.length > 0) throw new Error(`the source has no skill ${missing.join(', ')}`);
      if (options.preview === true) return context.show(preview, () => previewWords(context, preview));
      const unavailable = preview.skills.filter(({ status }) => status === 'unavailable');
      const skills = seen.skills.flatMap((one) => choiceOf(one, options));
      const done = skills.length === 0 ? { results: [], failed: 0 } : await execute(client, context, { ...body, skills });
      const report = { ...done, unavailable, dropped: preview.dropped };
      context.show(report, () => importWords(context, report));
      // What a plugin lends to every agent is no loss, unless it was asked for.
      const lost = done.failed + unavailable.filter(({ code }) => code !== 'PLUGIN_OWNED' || options.only !== undefined).length;
      if (lost > 0) throw new Error(`${lost} of ${done.results.length + unavailable.length} skills were not imported`);
    });
}

function execute(client: AmbitClient, context: Context, body: Parameters<AmbitClient['importSkills']>[0]) {
  const { io } = context;
  return client.importSkills(body, {
    signal: io.signal,
    // Of a few skills the end is there before a person has read how far it is.
    onProgress: ({ done, total, name }) =>
      void (io.isTerminal && !context.wantsJson && total > 10 && io.complain(`${done} of ${total}: ${name}\n`)),
  });
}

function choiceOf({ name, digest, replaces }: ImportCandidate, { onConflict, as }: Options): ImportChoice[] {
  if (name === null || digest === null) return [];
  return [{ name, digest, replaces, onConflict, ...(as === undefined ? {} : { newName: as }) }];
}

/** Sends what the person has; of a home or a project only what lies where the tool keeps skills. */
async function bring(
  client: AmbitClient,
  context: Context,
  { path, from }: { readonly path: string | undefined; readonly from: From },
): Promise<Brought> {
  if ('agentId' in from) {
    if (path !== undefined) throw new UsageError(`Skills of an agent come from no folder; leave ${path} out.`);
    return { source: { kind: 'agent', agentId: from.agentId }, leftOut: [] };
  }
  if (path === undefined) throw new UsageError('Name the folder or archive that the skills are in, or say --from agent:<id>.');
  const { format } = from;
  const at = resolve(context.io.cwd, path);
  const info = await lstat(at).catch(() => undefined);
  if (info?.isFile() === true)
    return {
      source: {
        kind: 'archive',
        format,
        archive: await client.upload('skill', (await readPlainFile(at, IMPORT_BYTES)).bytes, context.io.signal),
      },
      leftOut: [],
    };
  const place = importPlaces[format];
  const isHome = (await lstat(join(at, place)).catch(() => undefined)) !== undefined;
  const leftOut: string[] = [];
  const files = await readFolder(isHome ? join(at, place) : at, (left) => void leftOut.push(left));
  for (const { bytes } of files) await client.upload('skill', bytes, context.io.signal);
  const entries = files.map(({ entry }) => (isHome ? { ...entry, path: `${place}/${entry.path}` } : entry));
  return { source: { kind: 'files', format, files: entries }, leftOut };
}

function readFrom(value: string): From {
  if (value.startsWith('agent:')) return { agentId: value.slice('agent:'.length) };
  const format = ImportFormat.safeParse(value);
  if (format.success) return { format: format.data };
  throw new InvalidArgumentError(`It is agent:<id> or one of ${ImportFormat.options.join(', ')}.`);
}
