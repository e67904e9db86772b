import { httpApi } from '@ambit/contracts';
import { Option, type Command } from 'commander';
import type { Context } from '../context.js';
import { fields } from '../table.js';

interface SetOptions {
  readonly skills?: string;
  readonly mode?: 'default' | 'auto_approve' | 'full_access';
  readonly workspace?: string;
}

const DELEGATED = [
  ['DELEGATION', 'delegation'],
  ['TASK', 'title'],
  ['SUBAGENT', 'slotId'],
  ['AGENT', 'agentId'],
  ['STATUS', 'status'],
  ['SESSION', 'sessionId'],
] as const;

/** `session set | transfer | fork | clear | delete | delegations`. */
export function addSessionCommands(program: Command, context: Context): void {
  const session = program.command('session').description('change, move, copy, end or remove a session');

  session
    .command('set')
    .description('choose skills, permission mode or workspace for what comes')
    .argument('<id>')
    .option('--skills <names>', 'all, none or names with commas between')
    .addOption(new Option('--mode <mode>', 'what needs a decision').choices(['default', 'auto_approve', 'full_access']))
    .option('--workspace <id>', 'where its workers work; none takes it away')
    .action(async (id: string, { skills, mode, workspace }: SetOptions) => {
      const body = {
        ...(skills === undefined
          ? {}
          : { skills: skills === 'all' ? null : skills === 'none' ? [] : skills.split(',').map((name) => name.trim()) }),
        ...(mode === undefined ? {} : { mode }),
        ...(workspace === undefined ? {} : { workspaceId: workspace === 'none' ? null : workspace }),
      };
      const changed = await (await context.client()).request(httpApi.updateSession, { params: { id }, body });
      context.show(changed, () => fields(changed));
    });

  session
    .command('transfer')
    .description('give a session to another agent')
    .argument('<id>')
    .argument('<agent>', 'to whom')
    .option('--cancel', 'end what it is doing first; otherwise a busy session stays where it is')
    .action(async (id: string, agentId: string, { cancel }: { readonly cancel?: boolean }) => {
      const body = { agentId, whileBusy: cancel === true ? ('cancel' as const) : ('refuse' as const) };
      const moved = await (await context.client()).request(httpApi.transferSession, { params: { id }, body });
      context.show(moved, () => `session ${moved.id} is ${moved.agentId}'s now\n`);
    });

  session
    .command('fork')
    .description('a new session with the same agent, choices and tape')
    .argument('<id>')
    .action(async (id: string) => {
      const fork = await (await context.client()).request(httpApi.forkSession, { params: { id } });
      context.show(fork, () => `session ${fork.id}\n`);
    });

  session
    .command('clear')
    .description('end what a session does and take back what it was given; its tape stays')
    .argument('<id>')
    .action(async (id: string) => {
      const cleared = await (await context.client()).request(httpApi.clearSession, { params: { id } });
      context.show(cleared, () => `session ${cleared.id} does nothing any more\n`);
    });

  session
    .command('delete')
    .description('end a session and remove all that it has')
    .argument('<id>')
    .action(async (id: string) => {
      const deleted = await (await context.client()).request(httpApi.deleteSession, { params: { id } });
      context.show(deleted, () => `session ${id} is gone\n`);
    });

  session
    .command('delegations')
    .description('what a session handed to subagents')
    .argument('<id>')
    .action(async (id: string) => {
      const { items } = await (await context.client()).request(httpApi.listDelegations, { params: { id } });
      const rows = items.flatMap(({ id: delegation, tasks }) => tasks.map((task) => ({ delegation, ...task })));
      context.list(rows, DELEGATED, 'it delegated nothing');
    });
}
