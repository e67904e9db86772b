// What a measurement has to say of where it was made.
import { cpus, loadavg, totalmem } from 'node:os';

/** The machine now, with its load over the last minute before and after the work. `loadBefore` as os.loadavg() gives it. */
export function machineOf(loadBefore) {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    node: process.versions.node,
    load: [loadBefore, loadavg()].map(([minute]) => minute.toFixed(1)),
    at: new Date().toISOString(),
  };
}
