import { request } from 'node:http';

/**
 * Starts something in a container where a Docker engine answers that has its image, as a local process elsewhere.
 * `AMBIT_TEST_INFRASTRUCTURE` = `containers` fetches the image too, `local` never asks for an engine.
 */
export async function inContainerOr<T>(image: string, container: () => Promise<T>, local: () => Promise<T>): Promise<T> {
  return (await useContainers(image)) ? container() : local();
}

/** Whether tests take containers for what is in `image`. */
export async function useContainers(image: string): Promise<boolean> {
  const choice = process.env['AMBIT_TEST_INFRASTRUCTURE'];
  if (choice === 'local') return false;
  if (choice === 'containers') return true;
  // An engine that cannot reach a registry would make each test file wait for that to fail.
  return answers(`/images/${encodeURIComponent(image)}/json`);
}

function answers(path: string): Promise<boolean> {
  const host = process.env['DOCKER_HOST'] ?? 'unix:///var/run/docker.sock';
  const target = host.startsWith('unix://')
    ? { socketPath: host.slice('unix://'.length) }
    : { host: new URL(host).hostname, port: new URL(host).port };
  return new Promise((resolve) => {
    const asked = request({ ...target, path, timeout: 1_000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    asked.once('timeout', () => asked.destroy());
    asked.once('error', () => resolve(false));
    asked.end();
  });
}
