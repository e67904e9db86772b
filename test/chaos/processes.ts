import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** A process as /proc shows it; ids are used again, a start time with one is not. */
export interface Seen {
  readonly pid: number;
  readonly parent: number;
  readonly startedAt: string;
  readonly command: string;
}

const LOOK_MS = 500;
const LEAVES_WITHIN_MS = 10_000;
const PAUSE_MS = 100;

/** All processes of this machine. Throws where there is no /proc to read. */
export function processes(): Seen[] {
  if (!existsSync('/proc/self/stat')) throw new Error('orphans are looked for in /proc, which this system does not have: run it on Linux');
  return readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .flatMap((name) => read(Number(name)) ?? []);
}

function read(pid: number): Seen | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // A zombie has ended; whoever started it has not asked yet.
    if (fields[0] === 'Z') return undefined;
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
    return { pid, parent: Number(fields[1]), startedAt: fields[19] ?? '', command };
  } catch {
    return undefined; // it ended while we looked
  }
}

/** Those below a process, however far. */
function below(pid: number, all: readonly Seen[]): Seen[] {
  const children = new Map<number, Seen[]>();
  for (const one of all) children.set(one.parent, [...(children.get(one.parent) ?? []), one]);
  const found: Seen[] = [];
  for (let next = [pid]; next.length > 0;) {
    const generation = next.flatMap((parent) => children.get(parent) ?? []);
    found.push(...generation);
    next = generation.map((one) => one.pid);
  }
  return found;
}

const keyOf = ({ pid, startedAt }: Seen): string => `${pid} ${startedAt}`;

/** Everything that was ever started below this process, so that it is known again when whoever started it is gone. */
export class Family {
  // What runs before anything is started here is none of ours.
  readonly #before = new Set(below(process.pid, processes()).map(keyOf));
  readonly #known = new Set<string>();
  readonly #timer = setInterval(() => this.look(), LOOK_MS);

  /** To be called right before something is killed: what it had started is known from then on. */
  look(): void {
    for (const one of below(process.pid, processes())) if (!this.#before.has(keyOf(one))) this.#known.add(keyOf(one));
  }

  /** Those that are looked after. */
  living(): Seen[] {
    return below(process.pid, processes()).filter((one) => this.#known.has(keyOf(one)));
  }

  /** Those that live and have lost whoever looked after them; given some time to leave first. */
  orphans(): Promise<string[]> {
    return this.#left((alive) => {
      const kept = new Set(below(process.pid, alive).map(keyOf));
      return alive.filter((one) => !kept.has(keyOf(one)));
    });
  }

  /** Those that live at all, when everything was stopped. */
  remaining(): Promise<string[]> {
    return this.#left((alive) => alive);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #left(choose: (alive: readonly Seen[]) => readonly Seen[]): Promise<string[]> {
    for (const end = performance.now() + LEAVES_WITHIN_MS; ;) {
      this.look();
      const all = processes();
      const chosen = new Set(choose(all).map(keyOf));
      const left = all.filter((one) => this.#known.has(keyOf(one)) && chosen.has(keyOf(one)));
      if (left.length === 0 || performance.now() > end) return left.map(({ pid, command }) => `${pid} ${command.slice(0, 120)}`);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}
