// What the processes of the stack take: resident memory, and processor time. Where there is no /proc, `ps` knows the memory, and nobody the time.
import { execFileSync } from 'node:child_process';
import { closeSync, fsyncSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { median } from './load.mjs';

const WITH_POSTGRES_MB = 200;
const OTHERS_MB = 130;
const WITHOUT_POSTGRES = new Set(['mcp-runner', 'mcp-edge']);

/** Milliseconds until a KiB is on the disk of this folder: nats-server waits for that twice in every call where it syncs always. */
export function syncedWriteMs(folder) {
  const path = join(folder, 'bench-sync');
  const file = openSync(path, 'w');
  try {
    return median(
      Array.from({ length: 51 }, () => {
        const began = performance.now();
        writeSync(file, Buffer.alloc(1_024));
        fsyncSync(file);
        return performance.now() - began;
      }),
    );
  } finally {
    closeSync(file);
    rmSync(path);
  }
}

/** Megabytes of each process, with the design's budget for those that are ours. */
export function idleMemory({ services, servers }) {
  const ours = services.map(({ label, name, pid }) => ({
    name: label,
    megabytes: residentMb(pid),
    budget: WITHOUT_POSTGRES.has(name) ? OTHERS_MB : WITH_POSTGRES_MB,
  }));
  return [...ours, ...Object.entries(servers ?? {}).map(([name, pid]) => ({ name, megabytes: residentMb(pid), budget: null }))];
}

/** Milliseconds of processor time that each process has used so far, by name; empty where that cannot be known. */
export function processorMs({ services, servers }, others = {}) {
  const pids = [...services.map(({ label, pid }) => [label, pid]), ...Object.entries({ ...servers, ...others })];
  return new Map(
    pids.flatMap(([name, pid]) => {
      const used = usedMs(pid);
      return used === undefined ? [] : [[name, used + (name === 'postgres' ? childrenMs(pid) : 0)]];
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

/** The scheduler's own count of every thread, in nanoseconds: exact where the ticks of `stat` are a guess. */
function usedMs(pid) {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    return threads.reduce((sum, thread) => sum + nanosecondsOf(`/proc/${pid}/task/${thread}/schedstat`), 0) / 1e6;
  } catch {
    return undefined;
  }
}

/** PostgreSQL serves each connection with a process of its own. */
function childrenMs(pid) {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim().split(' ');
    return children.reduce((sum, child) => sum + (usedMs(child) ?? 0), 0);
  } catch {
    return 0;
  }
}

function nanosecondsOf(file) {
  return Number(readFileSync(file, 'latin1').split(' ')[0]);
}
