import { pick, seeded } from './random.js';

/** Every kind of process that is killed. */
export const VICTIMS = [
  'session-service',
  'tool-gateway',
  'mcp-broker',
  'mcp-runner',
  'skill-store',
  'plugin-registry',
  'admin-api',
  'worker',
  'stdio-server',
  'nats-server',
  'postgres',
] as const;
export type Victim = (typeof VICTIMS)[number];

export interface PlannedKill {
  /** Milliseconds after the first moment that a kill is allowed. */
  readonly atMs: number;
  readonly victim: Victim;
  /** In [0, 1): which of the processes of that kind that are up. */
  readonly which: number;
}

export interface PlanOptions {
  readonly seed: number;
  /** All kills fall into so many milliseconds. */
  readonly spanMs: number;
  /** Between two kills, on average. */
  readonly everyMs: number;
  /** Each kind is killed so often, even when there is no time for it at that pace. */
  readonly leastEach: number;
}

/** Who is killed when: the same for the same seed, each kind often enough, none two at the same moment. */
export function planKills({ seed, spanMs, everyMs, leastEach }: PlanOptions): PlannedKill[] {
  const random = seeded(seed);
  const count = Math.max(VICTIMS.length * leastEach, Math.floor(spanMs / everyMs));
  const victims: Victim[] = VICTIMS.flatMap((victim) => Array<Victim>(leastEach).fill(victim));
  while (victims.length < count) victims.push(pick(VICTIMS, random()));
  const slotMs = spanMs / count;
  return shuffled(victims, random).map((victim, index) => ({
    atMs: Math.round((index + 0.1 + 0.6 * random()) * slotMs),
    victim,
    which: random(),
  }));
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const left = [...items];
  return items.map(() => {
    const index = Math.floor(random() * left.length);
    const [taken] = left.splice(index, 1);
    return taken ?? pick(items, 0);
  });
}
