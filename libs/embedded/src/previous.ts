import { readFile } from 'node:fs/promises';

const PATIENCE_MS = 15_000;

/**
 * Waits for a server of an earlier start to leave its data folder: after a `kill -9` its watcher needs a few seconds to end
 * it. Throws an Error that names the process when it stays.
 */
export async function awaitPreviousProcess(pidFile: string, program: string): Promise<void> {
  const text = await readFile(pidFile, 'utf8').catch(() => '');
  const pid = Number.parseInt(text, 10);
  if (!Number.isSafeInteger(pid) || pid <= 1) return;
  const end = performance.now() + PATIENCE_MS;
  while (await isRunning(pid, program)) {
    if (performance.now() > end) throw new Error(`process ${pid} (${program}) still uses the data beside ${pidFile}; stop it first`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function isRunning(pid: number, program: string): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
  // A process id is used again after a restart of the machine or container; where the platform tells, look who it is now.
  const name = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => undefined);
  if (name === undefined) return process.platform !== 'linux';
  return name.trim() === program;
}
