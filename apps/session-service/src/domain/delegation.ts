import { excerptOf } from '@ambit/capability';
import { DELEGATION, type DelegationStatus, type RunStatus, type TaskStatus } from '@ambit/contracts';

const DONE: ReadonlySet<TaskStatus> = new Set(['completed', 'failed', 'cancelled', 'timed_out']);
export const isDone = (status: TaskStatus): boolean => DONE.has(status);

/** How a task stands once its child's run has ended. */
export function taskStatusOf(run: RunStatus): TaskStatus {
  switch (run) {
    case 'completed':
      return 'completed';
    case 'cancelled':
      return 'cancelled';
    case 'queued':
    case 'running':
      return 'running';
    case 'suspended':
      return 'waiting';
    case 'failed':
    case 'parked':
      return 'failed';
  }
}

/** What becomes of a delegation whose tasks stand so: a chain ends with the first task that does not complete. */
export function standingOf(mode: 'parallel' | 'chain', tasks: readonly TaskStatus[]): DelegationStatus {
  const ended = tasks.filter(isDone);
  const bad = ended.find((status) => status !== 'completed');
  if (mode === 'chain' && bad !== undefined) return statusOf(bad);
  if (ended.length < tasks.length) return 'running';
  return bad === undefined ? 'completed' : statusOf(bad);
}

const statusOf = (task: TaskStatus): DelegationStatus => (task === 'cancelled' || task === 'timed_out' ? task : 'failed');

/** The task of a chain that is next; undefined where one is at work or none is left. */
export function nextOf(
  mode: 'parallel' | 'chain',
  tasks: readonly { readonly index: number; readonly status: TaskStatus }[],
): number | undefined {
  if (mode === 'parallel' || tasks.some(({ status }) => status === 'running' || status === 'waiting')) return undefined;
  return tasks.find(({ status }) => status === 'pending')?.index;
}

export interface Brief {
  readonly prompt: string;
  readonly expectedOutput: string | null;
}

/** What a subagent is told: who it is where it is a preset, its task, what is expected of it, and in a chain the result before it. */
export function promptOf(
  { prompt, expectedOutput }: Brief,
  from: { readonly previous: string | null; readonly preset: string | null },
): string {
  const { previous, preset } = from;
  return [
    ...(preset === null || preset === '' ? [] : [preset]),
    prompt,
    ...(expectedOutput === null ? [] : [`Expected result:\n${expectedOutput}`]),
    ...(previous === null ? [] : [`Result of the task before this one:\n${previous}`]),
  ].join('\n\n');
}

/** The beginning of a result, for the parent's model. */
export const summaryOf = (result: string): string => excerptOf(result, DELEGATION.summaryChars);
