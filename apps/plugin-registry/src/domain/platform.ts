import type { Manifest } from './manifest.js';
import type { Here } from './package-files.js';

/** Why a plugin cannot work here, in one sentence; undefined where it can. */
export function platformProblem({ platforms, engine }: Pick<Manifest, 'platforms' | 'engine'>, here: Here): string | undefined {
  const system = `${here.platform}/${here.arch}`;
  if (platforms !== null && !platforms.some((one) => one === here.platform || one === system))
    return `it works on ${platforms.join(', ')}; servers run on ${system} here`.slice(0, 1_000);
  if (engine !== null && isOlder(here.version, engine)) return `it needs Ambit ${engine} or newer; this is ${here.version}`;
  return undefined;
}

function isOlder(version: string, than: string): boolean {
  const [left, right] = [numbers(version), numbers(than)];
  const at = right.findIndex((number, index) => number !== (left[index] ?? 0));
  return at >= 0 && (left[at] ?? 0) < (right[at] ?? 0);
}

const numbers = (version: string): number[] =>
  version
    .replace(/[-+].*$/, '')
    .split('.')
    .map(Number);
