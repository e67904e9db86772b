// What the processes of the stack take: resident memory, and processor time. Where there is no /proc, `ps` knows the memory, and nobody the time.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const WITH_POSTGRES_MB = 200;
const OTHERS_MB = 130;
const WITHOUT_POSTGRES = new Set(['mcp-runner']);
/** /proc counts in hundredths of a second. */
const TICK_MS = 10;

/** Megabytes of each process, with the design's budget for those that are ours. */
export function idleMemory({ services, servers }) {
  const ours = services.map(({ label, name, pid }) => ({
    name: label,
    megabytes: residentMb(pid),
    budget: WITHOUT_POSTGRES.has(name) ? OTHERS_MB : WITH_POSTGRES_MB,
  }));
  return [...ours, ...Object.entries(servers ?? {}).map(([name, pid]) => ({ name, megabytes: residentMb(pid), budget: null }))];
}

/** Milliseconds of processor time that each process has used so far; empty where that cannot be known. */
export function processorMs({ services, servers }) {
  const pids = [...services.map(({ label, pid }) => [label, pid]), ...Object.entries(servers ?? {})];
  return new Map(
    pids.flatMap(([name, pid]) => {
      const used = usedMs(pid);
      return used === undefined ? [] : [[name, used]];
    }),
  );
}

function residentMb(pid) {
  try {
    const kilobytes = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return Number(kilobytes) / 1_024;
  } catch {
    return Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' })) / 1_024;
  }
}

function usedMs(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  } catch {
    return undefined;
  }
}
