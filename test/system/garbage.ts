import { until } from '@ambit/testing';
import type { ServiceProcess } from './service-process.js';

/** Among the environment of a system whose services are to be {@link collectGarbage}d: each opens its inspector on a port of its own, once it is asked. */
export const INSPECTABLE = { NODE_OPTIONS: '--inspect-port=127.0.0.1:0' };
const ADDRESS = /Debugger listening on (ws:\S+)/g;

/** Has a running service let go of everything that it does not hold: what is resident after that is what it needs. */
export async function collectGarbage(service: ServiceProcess): Promise<void> {
  const address = (): string | undefined => [...service.log().matchAll(ADDRESS)].at(-1)?.[1];
  if (address() === undefined) process.kill(service.pid, 'SIGUSR1');
  await until(() => address() !== undefined);
  const inspector = new WebSocket(address() ?? '');
  const collected = new Promise((resolve, reject) => {
    inspector.onopen = () => inspector.send(JSON.stringify({ id: 1, method: 'HeapProfiler.collectGarbage' }));
    inspector.onmessage = resolve;
    inspector.onerror = reject;
  });
  await collected;
  inspector.close();
}
