import type { ResolvedServer } from '@ambit/contracts';
import { isAbsolute, join } from 'node:path';
import { childEnvironment } from './child-environment.js';
import { childUserFor, findCommand, type ChildUser } from './child-user.js';
import { dataFolderOf, type RunnerConfig } from './config.js';
import type { ChildSpec } from './guarded-child.js';

/** Everything to start a server with, and who it runs as. */
export async function childSpecOf(
  server: ResolvedServer,
  config: RunnerConfig,
  pluginRoot: string | undefined,
): Promise<{ readonly spec: ChildSpec; readonly user: ChildUser }> {
  const path = process.env['PATH'] ?? '';
  const named = pluginRoot !== undefined && server.command.startsWith('./') ? join(pluginRoot, server.command) : server.command;
  const program = await findCommand(named, path);
  if (program === undefined) throw new Error(`The program "${server.command}" does not exist here, or may not be run`);
  const user = await childUserFor({
    wanted: config.AMBIT_RUNNER_CHILD_USER,
    ownUid: process.getuid?.(),
    dataFolder: dataFolderOf(config),
    serverId: server.serverId,
    paths: [program, ...server.args.filter(isAbsolute)],
  });
  const words: Readonly<Record<string, string>> = {
    SERVER_DATA: user.home,
    PLUGIN_DATA: user.home,
    ...(pluginRoot === undefined ? {} : { PLUGIN_ROOT: pluginRoot }),
  };
  const fill = (text: string): string =>
    text.replace(/\$\{(SERVER_DATA|PLUGIN_DATA|PLUGIN_ROOT)\}/g, (whole, word: string) => words[word] ?? whole);
  const own = Object.fromEntries(Object.entries(server.env).map(([name, value]) => [name, fill(value)]));
  return {
    user,
    spec: {
      command: program,
      args: server.args.map(fill),
      env: childEnvironment(process.env, own, user.uid === undefined ? undefined : user.home),
      cwd: pluginRoot ?? user.home,
      uid: user.uid,
      gid: user.gid,
      memoryBytes: server.memoryBytes ?? undefined,
    },
  };
}
