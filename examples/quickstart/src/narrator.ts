import pc from 'picocolors';

/** A heading: what is about to be shown. */
export function chapter(title: string): void {
  process.stdout.write(`\n${pc.bold(title)}\n`);
}

/** One line of the story. */
export function tell(line: string): void {
  process.stdout.write(`  ${line}\n`);
}

/** Says what holds, once it does: a claim that is not so ends the story. */
export function claim(holds: boolean, what: string, found?: unknown): asserts holds {
  if (!holds) throw new Error(`This should hold and does not: ${what}${found === undefined ? '' : `\nfound: ${JSON.stringify(found)}`}`);
  process.stdout.write(`  ${pc.green('✓')} ${what}\n`);
}

/** Says what is done, and how long it took once it is. */
export async function timed<T>(what: string, work: () => Promise<T>): Promise<T> {
  const began = performance.now();
  const result = await work();
  tell(`${what} ${pc.dim(`(${((performance.now() - began) / 1_000).toFixed(1)} s)`)}`);
  return result;
}

export const dim = pc.dim;
export const bold = pc.bold;
/** A fingerprint as people compare them. */
export const short = (digest: string): string => pc.cyan(digest.slice(0, 12));
