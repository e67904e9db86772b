// The guard of one stdio server: a process of its own that outlives its runner just long enough to leave nothing behind.
//
//   runner ──control (fd 3)──► guard ──group──► server ──► whatever it starts
//      └───────── fds 0, 1, 2 pass through the guard untouched ─────────┘
//
// The first line on the control pipe says what to start; every later byte is a heartbeat. When the pipe ends, or no heartbeat came
// for 4 s (the runner is stopped, or lost its lease), the server's process group gets SIGTERM and 500 ms later SIGKILL, and so does
// every process that left the group but still carries the group's mark in its environment. No dependencies: it must start in
// milliseconds and stay small.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { Socket } from 'node:net';

const SILENCE_MS = 4_000;
const GRACE_MS = 500;
const WATCH_MS = 1_000;
const MARK = 'MCP_PROCESS_GROUP';
const FIRST_LINE_BYTES = 4 * 1024 * 1024;

const mark = randomBytes(16).toString('hex');
const control = new Socket({ fd: 3, readable: true, writable: true });
let child;
let silence;
let memory;
let ending = false;

// The terminal's Ctrl-C and a polite shutdown reach the runner too; it decides, and the end of the pipe tells us.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => undefined);

let first = '';
control.setEncoding('utf8');
control.on('data', (text) => {
  hear();
  if (child !== undefined || ending) return;
  first += text;
  const end = first.indexOf('\n');
  if (end === -1 && first.length > FIRST_LINE_BYTES) finish();
  if (end === -1) return;
  start(JSON.parse(first.slice(0, end)));
  first = '';
});
control.on('end', finish);
control.on('close', finish);
control.on('error', finish);
hear();

function hear() {
  clearTimeout(silence);
  silence = setTimeout(finish, SILENCE_MS);
}

function tell(fact) {
  if (control.writable) control.write(`${JSON.stringify(fact)}\n`);
}

function start({ command, args, env, cwd, uid, gid, memoryBytes }) {
  child = spawn(command, args, { env: { ...env, [MARK]: mark }, cwd, uid, gid, detached: true, stdio: ['inherit', 'inherit', 'inherit'] });
  child.once('error', (error) => {
    tell({ failed: error.message });
    if (child.pid === undefined) leave();
  });
  child.once('spawn', () => tell({ pid: child.pid }));
  child.once('exit', (code, signal) => {
    tell({ code, signal });
    finish();
  });
  if (memoryBytes !== undefined) memory = setInterval(() => watchMemory(memoryBytes), WATCH_MS);
}

function finish() {
  if (ending) return;
  ending = true;
  clearTimeout(silence);
  clearInterval(memory);
  if (child?.pid === undefined) return leave();
  send('SIGTERM');
  // Polling ends early when the group is empty, as it mostly is after the server's own exit.
  const deadline = performance.now() + GRACE_MS;
  const poll = setInterval(() => {
    if (isAlive() && performance.now() < deadline) return;
    clearInterval(poll);
    send('SIGKILL');
    leave();
  }, 20);
}

function leave() {
  control.destroy();
  process.exit(0);
}

function send(signal) {
  kill(-child.pid, signal);
  for (const pid of strays()) kill(pid, signal);
}

function kill(pid, signal) {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}

function isAlive() {
  return kill(-child.pid, 0) || strays().length > 0;
}

/** Processes that made a group of their own, found by the mark they inherited; none where there is no /proc. */
function strays() {
  const found = [];
  for (const pid of pids()) {
    try {
      if (pid !== process.pid && readFileSync(`/proc/${pid}/environ`, 'latin1').includes(mark)) found.push(pid);
    } catch {
      // It ended while we looked, or is another user's.
    }
  }
  return found;
}

function pids() {
  try {
    return readdirSync('/proc')
      .filter((name) => /^[0-9]+$/.test(name))
      .map(Number);
  } catch {
    return [];
  }
}

function watchMemory(limit) {
  let pages = 0;
  for (const pid of pids()) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      if (Number(fields[2]) === child.pid) pages += Number(fields[21]);
    } catch {
      // It ended while we looked.
    }
  }
  if (pages * 4_096 <= limit) return;
  tell({ failed: `it used more than ${limit} bytes of memory` });
  finish();
}
