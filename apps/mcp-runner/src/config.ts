import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';

export const RunnerConfig = z.object({
  /** Where this installation keeps the data of its processes. */
  AMBIT_DATA_DIR: z.string().min(1).optional(),
  /** Servers' own folders and unpacked plugin packages; the runner's alone, where other users can pass. @default `servers` in the above */
  AMBIT_RUNNER_DATA: z.string().min(1).optional(),
  /** `auto`: another user where the runner is root and that user can reach the program; `same`; or a uid. */
  AMBIT_RUNNER_CHILD_USER: z
    .string()
    .regex(/^(auto|same|[1-9][0-9]{0,9})$/, 'auto, same or a uid')
    .default('auto'),
  /** Servers that start at once; more wait. */
  AMBIT_RUNNER_STARTS: z.coerce.number().int().min(1).max(100).default(4),
});
export type RunnerConfig = z.output<typeof RunnerConfig>;

/** The folder of all servers' folders. */
export function dataFolderOf(config: RunnerConfig): string {
  if (config.AMBIT_RUNNER_DATA !== undefined) return config.AMBIT_RUNNER_DATA;
  return config.AMBIT_DATA_DIR === undefined
    ? join(tmpdir(), `ambit-runner-${process.getuid?.() ?? 'data'}`)
    : join(config.AMBIT_DATA_DIR, 'servers');
}
