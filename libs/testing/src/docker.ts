import { request } from 'node:http';

/** Whether a Docker engine answers here. `AMBIT_TEST_INFRASTRUCTURE` = `local` or `containers` decides without asking. */
export async function useContainers(): Promise<boolean> {
  const choice = process.env['AMBIT_TEST_INFRASTRUCTURE'];
  if (choice === 'local') return false;
  if (choice === 'containers') return true;
  const host = process.env['DOCKER_HOST'] ?? 'unix:///var/run/docker.sock';
  const target = host.startsWith('unix://') ? { socketPath: host.slice('unix://'.length) } : { host: new URL(host).hostname, port: new URL(host).port };
  return new Promise((resolve) => {
    const ping = request({ ...target, path: '/_ping', timeout: 1_000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    ping.once('timeout', () => ping.destroy());
    ping.once('error', () => resolve(false));
    ping.end();
  });
}
