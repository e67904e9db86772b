import { findOnPath, runCommand } from './commands.js';
import type { NatsSource } from './nats-binary.js';

const IMAGE = 'nats:2.15-alpine';

/**
 * The nats-server of the public image, copied out of it: the program is statically linked, and as a plain child process it
 * is guarded like the others, where a container would outlive a killed starter.
 */
export const fetchFromDockerImage: NatsSource = async (target) => {
  if (process.platform !== 'linux') return { ok: false, reason: 'the image holds a Linux program' };
  if ((await findOnPath('docker')) === undefined) return { ok: false, reason: 'no docker command' };
  const engine = await runCommand('docker', ['version', '--format', '{{.Server.Version}}'], { timeoutMs: 5_000 });
  if (!engine.ok) return { ok: false, reason: 'no Docker engine answers' };
  const created = await runCommand('docker', ['create', IMAGE], { timeoutMs: 120_000 });
  if (!created.ok) return { ok: false, reason: created.stderr.trim().split('\n')[0] ?? '' };
  const container = created.stdout.trim().split('\n').at(-1) ?? '';
  try {
    const copied = await runCommand('docker', ['cp', `${container}:/usr/local/bin/nats-server`, target], { timeoutMs: 30_000 });
    return copied.ok ? { ok: true } : { ok: false, reason: copied.stderr.trim() };
  } finally {
    await runCommand('docker', ['rm', container], { timeoutMs: 10_000 });
  }
};
