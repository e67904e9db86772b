import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';

export const RunnerConfig = z.object({
  /** Servers' own folders and unpacked plugin packages; the runner's alone, where other users can pass. */
  AMBIT_RUNNER_DATA: z.string().min(1).default(join(tmpdir(), `ambit-runner-${process.getuid?.() ?? 'data'}`)),
  /** `auto`: another user where the runner is root and that user can reach the program; `same`; or a uid. */
  AMBIT_RUNNER_CHILD_USER: z.string().regex(/^(auto|same|[1-9][0-9]{0,9})$/, 'auto, same or a uid').default('auto'),
  /** Servers that start at once; more wait. */
  AMBIT_RUNNER_STARTS: z.coerce.number().int().min(1).max(100).default(4),
});
export type RunnerConfig = z.output<typeof RunnerConfig>;
