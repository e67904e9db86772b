import { httpApi } from '@ambit/contracts';
import { Option, type Command } from 'commander';
import type { Context } from '../context.js';

interface MatchOptions {
  readonly adapter: string;
  readonly endpoint: string;
  readonly scene: 'private' | 'group' | 'channel';
  readonly sceneId: string;
  readonly content: string;
  readonly media: readonly ('image' | 'audio' | 'video')[];
}

/** `agent match`. */
export function addAgentCommands(program: Command, context: Context): void {
  const agent = program.command('agent').description('which agent is meant');
  agent
    .command('match')
    .description('which agent a message from there would reach')
    .option('--adapter <name>', 'where it comes from', 'http')
    .option('--endpoint <name>', 'its endpoint', '')
    .addOption(new Option('--scene <scene>', 'in what setting').choices(['private', 'group', 'channel']).default('private'))
    .option('--scene-id <id>', 'which one', '')
    .option('--content <text>', 'what it says', 'hello')
    .addOption(new Option('--media <kinds...>', 'what comes with it').choices(['image', 'audio', 'video']).default([]))
    .action(async ({ media, ...place }: MatchOptions) => {
      const body = { ...place, media: media.map((kind) => ({ kind })) };
      const { agentId, version, rule } = await (await context.client()).request(httpApi.matchAgent, { body });
      const why = rule === null ? 'no rule matches' : `rule ${rule + 1} of its match rules`;
      context.show({ agentId, version, rule }, () => `${agentId} (version ${version}; ${why})\n`);
    });
}
