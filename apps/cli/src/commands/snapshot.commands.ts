import type { AmbitClient } from '@ambit/client';
import { httpApi, Uuid, type Explanation } from '@ambit/contracts';
import type { Command } from 'commander';
import { take, type Context } from '../context.js';
import { diffWords, snapshotWords } from '../snapshot-words.js';
import { printable } from '../table.js';

const MOST = 200;

/** `snapshot list | show | diff`, `explain`: what a run sees, what changed, and why. */
export function addSnapshotCommands(program: Command, context: Context): void {
  const snapshot = program.command('snapshot').description('what runs were given to see');
  snapshot
    .command('list')
    .description('which snapshots a session or an agent was given, newest first')
    .option('--session <id>')
    .option('--agent <id>')
    .action(async ({ session, agent }: { readonly session?: string; readonly agent?: string }) => {
      const pages = (await context.client()).pages(httpApi.listSnapshots, { query: { sessionId: session, agentId: agent } });
      const columns = [
        ['FINGERPRINT', 'fingerprint'],
        ['AGENT', 'agentId'],
        ['TOOLS', 'tools'],
        ['SKILLS', 'skills'],
        ['AT', 'at'],
      ] as const;
      context.list(await take(pages, MOST), columns, 'no snapshot yet');
    });
  snapshot
    .command('show')
    .description('what a run with this fingerprint sees')
    .argument('<fingerprint>')
    .action(async (fingerprint: string) => {
      const found = await (await context.client()).request(httpApi.getSnapshot, { params: { fingerprint } });
      context.show(found, () => snapshotWords(fingerprint, found));
    });
  snapshot
    .command('diff')
    .description('what changed from one snapshot to another')
    .argument('<before>', 'a fingerprint')
    .argument('<after>', 'another')
    .action(async (fingerprint: string, other: string) => {
      const diff = await (await context.client()).request(httpApi.diffSnapshots, { params: { fingerprint, other } });
      context.show(diff, () => diffWords(diff));
    });

  program
    .command('explain')
    .description('why a session or an agent can or cannot see a tool or a skill')
    .argument('<where>', 'an agent, or the id of a session')
    .argument('<name>', 'a tool or a skill')
    .option('--as <principal>', 'as if it were for this one')
    .action(async (where: string, name: string, { as }: { readonly as?: string }) => {
      const explanation = await explain(await context.client(), { where, name, as });
      context.show(explanation, () => explanationWords(explanation, context));
    });
}

/** Of the two things that a name can be, the one that has something to say. */
async function explain(
  client: AmbitClient,
  asked: { readonly where: string; readonly name: string; readonly as: string | undefined },
): Promise<Explanation> {
  const { where, name, as } = asked;
  const place = Uuid.safeParse(where).success ? { sessionId: where } : { agentId: where };
  const tool = await client.request(httpApi.explain, { query: { ...place, name, kind: 'tool', as } });
  if (tool.visible || tool.reasons.length > 0) return tool;
  const skill = await client.request(httpApi.explain, { query: { ...place, name, kind: 'skill', as } });
  return skill.visible || skill.reasons.length > 0 ? skill : tool;
}

function explanationWords(
  { kind, name, visible, summary, chain, reasons, fingerprint, policyVersion }: Explanation,
  { paint }: Context,
): string {
  const marks = { pass: paint.green('pass'), fail: paint.red('fail'), info: paint.dim('info') } as const;
  return [
    `${kind} ${printable(name)}: ${visible ? paint.green('visible') : paint.red('not visible')}\n${printable(summary, 2_000)}\n`,
    ...chain.map((step) => `  ${marks[step.verdict]}  ${step.step}: ${printable(step.detail, 500)} [${step.code}]\n`),
    ...reasons.map(
      (reason) =>
        `  ${reason.included ? paint.green('in  ') : paint.red('out ')}  ${printable(reason.slot)}: ${printable(reason.detail, 500)} [${reason.code}]\n`,
    ),
    paint.dim(`policy version ${policyVersion}${fingerprint === null ? '' : `, fingerprint ${fingerprint}`}`) + '\n',
  ].join('');
}
