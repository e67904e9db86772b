import { readdirSync, readFileSync } from 'node:fs';

function read(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    // It ended while we looked.
    return '';
  }
}

function all(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** State and parent, which stand behind the name, whatever that holds. */
function statOf(pid: number): readonly [string | undefined, number] {
  const stat = read(pid, 'stat');
  const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return [state, Number(parent)];
}

/** All processes below one, however deep; those that ended and were not collected yet are none. */
export function descendantsOf(ancestor: number): number[] {
  const children = new Map<number, number[]>();
  for (const pid of all()) {
    const [state, parent] = statOf(pid);
    if (state !== undefined && state !== 'Z') children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  const below = (pid: number): number[] => (children.get(pid) ?? []).flatMap((child) => [child, ...below(child)]);
  return below(ancestor);
}

/** All processes that inherited this text in their environment, wherever they hang now. */
export function processesWith(mark: string): number[] {
  return all().filter((pid) => pid !== process.pid && read(pid, 'environ').includes(mark) && statOf(pid)[0] !== 'Z');
}

/** Megabytes that these processes have in memory, one with another. */
export function residentMb(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + Number(/^VmRSS:\s+(\d+)/m.exec(read(pid, 'status'))?.[1] ?? 0) / 1_024, 0);
}
