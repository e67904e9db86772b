import type { ImportCandidate, ImportResult } from '@ambit/contracts';
import type { Context } from './context.js';
import { cell } from './table.js';

interface Preview {
  readonly skills: readonly ImportCandidate[];
  readonly dropped: readonly string[];
}
interface Report {
  readonly results: readonly ImportResult[];
  readonly unavailable: readonly ImportCandidate[];
  readonly dropped: readonly string[];
}

/** What an import would do, a line a skill, and below it what would be lost. */
export function previewWords(context: Context, { skills, dropped }: Preview): string {
  const { paint } = context;
  const lines = skills.flatMap((skill) => {
    const { status, digest, suggestedName } = skill;
    if (status === 'unavailable') return [unavailableLine(context, skill)];
    const line = `  ${status === 'ready' ? '+' : '~'} ${cell(skill.name)}: ${status}`;
    const more = [`${skill.files} files, ${skill.bytes} bytes, ${digest?.slice(0, 12) ?? ''}`];
    if (status === 'conflict') more.push(skill.replaces === digest ? 'the agent has this very version' : `free is ${cell(suggestedName)}`);
    return [
      (status === 'ready' ? paint.green : paint.yellow)(`${line} (${more.join('; ')})`),
      ...skill.dropped.map((note) => `      dropped: ${cell(note)}`),
      ...skill.warnings.map((note) => `      warning: ${cell(note)}`),
    ];
  });
  return `${[...lines, ...loose(dropped)].join('\n')}\n`;
}

/** What became of each skill. */
export function importWords(context: Context, { results, unavailable, dropped }: Report): string {
  const { paint } = context;
  const lines = results.map(({ name, outcome, as, code, reason }) => {
    const words = `  ${cell(name)}: ${outcome}${as === null || as === name ? '' : ` as ${cell(as)}`}${reason === null ? '' : ` (${cell(reason)})`}`;
    if (outcome === 'failed') return paint.red(`${words} [${code ?? ''}]`);
    return outcome === 'skipped' ? paint.dim(words) : paint.green(words);
  });
  return `${[...lines, ...unavailable.map((skill) => unavailableLine(context, skill)), ...loose(dropped)].join('\n')}\n`;
}

function unavailableLine({ paint }: Context, { name, folder, reason }: ImportCandidate): string {
  return paint.red(`  - ${cell(name ?? folder)}: unavailable (${cell(reason)})`);
}

const loose = (dropped: readonly string[]): string[] => dropped.map((path) => `  of no skill: ${cell(path)}`);
