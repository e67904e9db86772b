import { httpApi } from '@ambit/contracts';
import type { Command } from 'commander';
import type { Context } from '../context.js';
import { addSkillImport } from './skill-import.commands.js';
import { UsageError } from '../usage-error.js';

/** `skill import`, `skill script enable | disable`. */
export function addSkillCommands(program: Command, context: Context): void {
  const skill = program.command('skill').description('skills of agents');
  addSkillImport(skill, context);
  const script = skill.command('script').description('which of their scripts an agent may run');
  script
    .command('enable')
    .description('let the agent run a script with skill_run, as it is in one version of the skill')
    .argument('<agent/skill>', 'whose skill, and which')
    .argument('<path>', 'the script, as in scripts/report.py')
    .option('--digest <digest>', 'the version that you looked at, and of a plugin’s skill always; without it the one that is there now')
    .action(async (which: string, path: string, options: { readonly digest?: string }) => {
      const client = await context.client();
      const params = named(which);
      const digest = options.digest ?? (await client.request(httpApi.getSkill, { params })).digest;
      const enabled = await client.request(httpApi.enableScript, { params, body: { digest, path } });
      context.show(enabled, () => `${params.agentId} may run ${list(enabled.scripts)} of ${params.name}, version ${enabled.digest}\n`);
    });
  script
    .command('disable')
    .description('take that back')
    .argument('<agent/skill>', 'whose skill, and which')
    .argument('<path>', 'the script')
    .action(async (which: string, path: string) => {
      const params = named(which);
      const left = await (await context.client()).request(httpApi.disableScript, { params, body: { path } });
      context.show(left, () => `${params.agentId} may run ${list(left.scripts)} of ${params.name}\n`);
    });
}

const list = (scripts: readonly string[]): string => (scripts.length === 0 ? 'no script' : scripts.join(', '));

function named(which: string): { agentId: string; name: string } {
  const [agentId = '', name = '', ...more] = which.split('/');
  if (agentId === '' || name === '' || more.length > 0) throw new UsageError(`"${which}" is no skill of an agent; write <agent>/<skill>.`);
  return { agentId, name };
}
