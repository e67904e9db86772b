// The guard of a worker's commands: one process that outlives its worker just long enough to leave none of them behind.
//
//   worker ──stdin──► guard        "+<group> <mark>"  a command begins; answered "+<group>"
//      ◄──stdout──                 "!<group>"         end it and all it started; answered "!<group>"
//                                  "-<group>"         it has ended
//
// When the pipe ends, as it does however the worker dies, every group that is left gets SIGTERM and 500 ms later SIGKILL; and so does each
// process that left its group but still carries the group's mark in its environment. No dependencies: it must start in milliseconds.
import { readdirSync, readFileSync } from 'node:fs';

const GRACE_MS = 500;
const POLL_MS = 20;
const LINE_MAX = 1_000;
const groups = new Map();

// The terminal's Ctrl-C reaches the worker too; it decides, and the end of the pipe tells us.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => undefined);
process.stdout.on('error', () => undefined);

let rest = '';
process.stdin.setEncoding('utf8');
process.stdin.on('data', (text) => {
  const lines = (rest + text).split('\n');
  rest = (lines.pop() ?? '').slice(0, LINE_MAX);
  for (const line of lines) hear(line);
});
process.stdin.on('end', leave);
process.stdin.on('close', leave);
process.stdin.on('error', leave);

function hear(line) {
  const [, verb, id, mark] = /^([+!-])(\d+)(?: ([0-9a-f]{16,64}))?$/.exec(line) ?? [];
  const group = Number(id);
  if (verb === '+') {
    groups.set(group, mark);
    process.stdout.write(`${line.split(' ')[0]}\n`);
  } else if (verb === '-') groups.delete(group);
  else if (verb === '!') {
    void end(group).then(() => process.stdout.write(`${line}\n`));
  }
}

let leaving = false;
function leave() {
  if (leaving) return;
  leaving = true;
  void Promise.all([...groups.keys()].map(end)).then(() => process.exit(0));
}

async function end(group) {
  const mark = groups.get(group);
  const send = (signal) => {
    kill(-group, signal);
    for (const pid of strays(mark)) kill(pid, signal);
  };
  const isAlive = () => kill(-group, 0) || strays(mark).length > 0;
  send('SIGTERM');
  for (let waited = 0; isAlive() && waited < GRACE_MS; waited += POLL_MS) await pause();
  // One that forks while it is looked for is found in the next round.
  for (let round = 0; isAlive() && round < 100; round++) {
    send('SIGKILL');
    await pause();
  }
  groups.delete(group);
}

const pause = () => new Promise((resolve) => setTimeout(resolve, POLL_MS));

function kill(pid, signal) {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}

/** Processes that made a group of their own, found by the mark they inherited; none where there is no /proc. */
function strays(mark) {
  if (mark === undefined) return [];
  const found = [];
  let pids = [];
  try {
    pids = readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name));
  } catch {
    return [];
  }
  for (const pid of pids) {
    try {
      if (Number(pid) !== process.pid && readFileSync(`/proc/${pid}/environ`, 'latin1').includes(mark)) found.push(Number(pid));
    } catch {
      // It ended while we looked, or is another user's.
    }
  }
  return found;
}
