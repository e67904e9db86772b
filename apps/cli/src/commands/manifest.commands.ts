import { resolve } from 'node:path';
import { loadManifest, uploadManifest, type Manifest } from '@ambit/client/manifest';
import { httpApi, type Plan, type PlannedChange } from '@ambit/contracts';
import type { Command } from 'commander';
import type { Context } from '../context.js';
import { cell } from '../table.js';
import { UsageError } from '../usage-error.js';

interface FileOptions {
  readonly file: string;
  readonly prune?: boolean;
  readonly yes?: boolean;
}
const SIGNS: Readonly<Record<PlannedChange['action'], string>> = { create: '+', update: '~', delete: '-', keep: ' ', unchanged: ' ' };

/** `validate`, `plan`, `apply`: the desired state of a set, from its file. */
export function addManifestCommands(program: Command, context: Context): void {
  const load = (file: string): Promise<Manifest> => loadManifest(resolve(context.io.cwd, file), { environment: context.io.env });
  const fileCommand = (name: string, description: string) =>
    program.command(name).description(description).option('-f, --file <file>', 'the file to read', 'ambit.yaml');

  fileCommand('validate', 'say whether ambit.yaml and the files it names can be taken; asks no server').action(
    async ({ file }: FileOptions) => {
      const { desired, blobs } = await load(file);
      const count = (things: object) => Object.keys(things).length;
      const has = {
        agents: count(desired.agents),
        servers: count(desired.servers),
        plugins: count(desired.plugins),
        skills: count(desired.skills),
        files: blobs.length,
      };
      context.show({ valid: true, set: desired.set, ...has }, () => `${file} is valid: set ${desired.set} with ${words(has)}\n`);
    },
  );

  fileCommand('plan', 'show what apply would change, and change nothing')
    .option('--prune', 'also delete what this set made and the file no longer names')
    .action(async ({ file, prune = false }: FileOptions) => {
      const { desired } = await load(file);
      const plan = await (await context.client()).request(httpApi.plan, { body: { desired, prune } });
      context.show(plan, () => planWords(context, plan));
    });

  fileCommand('apply', 'make the set what the file says')
    .option('--prune', 'also delete what this set made and the file no longer names')
    .option('-y, --yes', 'do not ask first')
    .action(async ({ file, prune = false, yes = false }: FileOptions) => {
      const manifest = await load(file);
      const client = await context.client();
      const plan = await client.request(httpApi.plan, { body: { desired: manifest.desired, prune } });
      if (!context.wantsJson) context.io.write(planWords(context, plan));
      if (hasChanges(plan)) {
        if (!yes) await confirm(context);
        await uploadManifest(client, manifest, context.io.signal);
        await client.request(httpApi.apply, { body: { desired: manifest.desired, prune, digest: plan.digest } });
      }
      context.show(plan, () => (hasChanges(plan) ? `set ${plan.set} is as ${file} says\n` : ''));
    });
}

async function confirm(context: Context): Promise<void> {
  const answer = await context.io.ask('Apply these changes? [y/N] ');
  if (answer === undefined) throw new UsageError('Nobody is there to confirm; say --yes to apply without a question.');
  if (!/^y(es)?$/i.test(answer.trim())) throw new Error('Nothing was changed.');
}

const hasChanges = (plan: Plan) => plan.changes.some(({ action }) => SIGNS[action] !== ' ');

function planWords(context: Context, plan: Plan): string {
  const lines = plan.changes.map((change) => {
    const line = `  ${SIGNS[change.action]} ${change.kind} ${change.name}${change.action === 'unchanged' ? '' : `: ${change.action}`}${change.detail === '' ? '' : ` (${cell(change.detail)})`}`;
    if (change.action === 'create') return context.paint.green(line);
    if (change.action === 'delete') return context.paint.red(line);
    return change.action === 'update' ? context.paint.yellow(line) : context.paint.dim(line);
  });
  return `${lines.join('\n')}\n${hasChanges(plan) ? '' : `nothing to change in set ${plan.set}\n`}`;
}

function words(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${count} ${count === 1 ? name.slice(0, -1) : name}`)
    .join(', ');
}
