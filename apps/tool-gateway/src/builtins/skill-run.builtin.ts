import { z } from 'zod';
import type { Dispatcher } from '../dispatch/dispatch.js';
import { ScriptInput } from '../domain/script-command.js';
import type { Builtin } from './builtin.js';

/** Runs a script of a skill on the run's worker. */
export function skillRunBuiltin(by: Dispatcher): Builtin {
  const inputSchema: Record<string, unknown> = { ...z.toJSONSchema(ScriptInput, { io: 'input' }) };
  delete inputSchema.$schema;
  return {
    kind: 'command',
    by,
    registration: {
      name: 'skill_run',
      exposure: 'user-configurable',
      description:
        'Run a script of a skill whose SKILL.md you have viewed, in the workspace’s folder; skill_list says which scripts may be run. Gives its exit code and output. It is ended after timeoutMs, 120 s where you say nothing.',
      inputSchema,
      effect: 'write',
      access: 'command',
      parallel: false,
      version: 1,
      requiresConfirmation: false,
      needsSkills: true,
      needsScripts: true,
    },
  };
}
