import pc from 'picocolors';

/** One line for the person at the terminal. */
export function say(line: string): void {
  process.stdout.write(`${pc.dim('ambit')}  ${line}\n`);
}

/** Says what is done, and how long it took once it is. */
export async function timed<T>(what: string, work: () => Promise<T>): Promise<T> {
  const began = performance.now();
  const result = await work();
  say(`${what} ${pc.dim(`(${((performance.now() - began) / 1_000).toFixed(1)} s)`)}`);
  return result;
}
