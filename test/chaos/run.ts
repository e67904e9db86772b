import { setTimeout as pause } from 'node:timers/promises';
import type { Books, Kill } from './books.js';
import { JournalWatch } from './journal-watch.js';
import { CALLS_OF_RUN, Load, OFFERED } from './load.js';
import type { Options } from './options.js';
import { planKills, VICTIMS } from './plan.js';
import { seeded } from './random.js';
import { completions, paceBetween } from './recovery.js';
import { Stage } from './stage.js';
import { readRuns, readTapes } from './tapes.js';

const EVERY_MS = 4_000;
const LEAST_EACH = 2;
const SHORTEST_MS = 3_500;
/** Everything is started at once, and takes a while until it carries the load. */
const WARM_WITHIN_MS = 60_000;
const WARM_MS = 4_000;
const WARM_SHARE = 0.75;
const STEADY_MS = 8_000;
/** After the last kill there is load for as long as throughput may take to come back, and a little. */
const AFTER_MS = 11_000;
/** A run that was with a worker that died comes again after 30 s; one that has not ended by then is stuck. */
const DRAINED_WITHIN_MS = 150_000;
const LOOK_MS = 500;

export interface Outcome {
  readonly books: Books;
  readonly figures: { readonly restartMs: readonly number[]; readonly startedMs: number; readonly drainedMs: number };
}

/** Starts everything, kills for as long as it was told, and brings back what was written down meanwhile. */
export async function runChaos({ seed, seconds }: Options, say: (line: string) => void): Promise<Outcome> {
  const began = performance.now();
  const stage = await Stage.open(say);
  const { scene, agentId } = stage;
  const startedMs = performance.now() - began;
  say(`two of everything run after ${(startedMs / 1_000).toFixed(1)} s`);
  let orphans: string[] | undefined;
  try {
    const { connection, apiUrls, token } = scene.system;
    const journal = new JournalWatch(connection);
    const load = new Load({ apiUrls, token, agentId, tools: stage.tools, random: seeded(seed + 1) });
    await warm(journal);
    const steady = { from: Date.now(), to: Date.now() + STEADY_MS };
    await pause(STEADY_MS);

    const kills = await kill(stage, { seed, seconds, say });
    const loadedUntil = Date.now();
    await load.stop();
    say(`${kills.length} kills; ${load.taken.length} messages were taken; waiting for their runs to end`);
    await stage.isWhole();
    const drainedMs = await drained(stage);
    await journal.finish();
    const { operations } = journal;
    const [calls, runs, effects] = await Promise.all([readTapes(scene, load.taken), readRuns(scene, agentId), scene.counting.effects()]);
    const { fallen, restartMs } = stage.supervisor;
    orphans = await stage.close();
    return {
      books: {
        offered: OFFERED,
        ...{ kills, steady, loadedUntil, operations, calls, effects, runs, orphans, fallen: [...fallen] },
        messages: load.taken.length,
        callsOfRun: CALLS_OF_RUN,
        untaken: load.untaken,
      },
      figures: { restartMs, startedMs, drainedMs },
    };
  } finally {
    if (orphans === undefined) await stage.close();
  }
}

async function warm(journal: JournalWatch): Promise<void> {
  const isWarm = (): boolean => {
    const now = Date.now();
    return paceBetween(completions(journal), now - WARM_MS, now) >= WARM_SHARE * OFFERED;
  };
  for (const end = performance.now() + WARM_WITHIN_MS; performance.now() < end && !isWarm();) await pause(LOOK_MS);
}

async function kill(
  stage: Stage,
  { seed, seconds, say }: Pick<Options, 'seed' | 'seconds'> & { say: (line: string) => void },
): Promise<Kill[]> {
  const from = performance.now();
  const kills: Kill[] = [];
  const spanMs = seconds * 1_000 - AFTER_MS;
  // A run too short for each kind kills what it comes to, at the same pace; the verdict says that it was too short.
  const leastEach = Math.min(LEAST_EACH, Math.floor(spanMs / SHORTEST_MS / VICTIMS.length));
  for (const planned of planKills({ seed, spanMs, everyMs: EVERY_MS, leastEach })) {
    await pause(Math.max(0, from + planned.atMs - performance.now()));
    const done = await stage.kill(planned);
    if (done === undefined) say(`no ${planned.victim} was up to be killed`);
    else kills.push(done);
    if (done !== undefined) say(`${((performance.now() - from) / 1_000).toFixed(1).padStart(6)} s  killed ${done.label}`);
  }
  await pause(Math.max(AFTER_MS, from + seconds * 1_000 - performance.now()));
  return kills;
}

/** Waits until no run is open, for as long as one may be; gives how long it took. */
async function drained({ scene, agentId }: Stage): Promise<number> {
  const began = performance.now();
  const isOpen = async (): Promise<boolean> =>
    (await readRuns(scene, agentId)).some(({ status }) => status === 'queued' || status === 'running' || status === 'suspended');
  while (performance.now() - began < DRAINED_WITHIN_MS && (await isOpen().catch(() => true))) await pause(LOOK_MS);
  return performance.now() - began;
}
