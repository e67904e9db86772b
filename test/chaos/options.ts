import { readFileSync } from 'node:fs';
import { z } from 'zod';

export const Options = z.object({
  seed: z.int().min(0),
  /** Under kills. */
  seconds: z.number().min(20).max(86_400),
  /** Where what came of it is written, as JSON. */
  resultFile: z.string(),
});
export type Options = z.output<typeof Options>;

/** What the command was told; it leaves it in a file named in the environment. */
export function readOptions(): Options {
  const file = process.env.AMBIT_CHAOS_OPTIONS;
  if (file === undefined) throw new Error('start this with `npm run chaos`');
  return Options.parse(JSON.parse(readFileSync(file, 'utf8')));
}
