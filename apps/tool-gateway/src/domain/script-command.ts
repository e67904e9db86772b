import { ScriptPath } from '@ambit/contracts';
import { z } from 'zod';

/** What a model says to run a script of a skill. */
export const ScriptInput = z.strictObject({
  name: z.string().min(1).max(64),
  script: ScriptPath,
  arguments: z.array(z.string().max(4_096)).max(100).default([]),
  timeoutMs: z.int().min(100).max(1_800_000).default(120_000),
});
export type ScriptInput = z.output<typeof ScriptInput>;

const RUNNERS: Readonly<Record<string, string>> = { py: 'python3', js: 'node', mjs: 'node', cjs: 'node', sh: 'sh' };

/** The shell command that a script is: judged, shown to people and run in these words. SKILL_ROOT is where the skill's files stand. */
export function scriptCommand({ script, arguments: values }: Pick<ScriptInput, 'script' | 'arguments'>): string {
  const runner = RUNNERS[script.slice(script.lastIndexOf('.') + 1)] ?? 'false';
  return [runner, `"$SKILL_ROOT/${script}"`, ...values.map(quoted)].join(' ');
}

/** A word that the shell takes as it is. */
function quoted(value: string): string {
  return /^[A-Za-z0-9_./:=@%+,-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;
}
