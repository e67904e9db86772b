import { chmod, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { MINIMUM_NATS_SERVER } from '@ambit/contracts';
import { findOnPath, runCommand } from './commands.js';
import { fetchDebianPackage } from './nats-from-debian.js';
import { fetchFromDockerImage } from './nats-from-docker.js';
import { fetchOfficialRelease } from './nats-from-release.js';

/** Puts an executable nats-server at `target`, or says in one sentence why it cannot. `folder` is for its own files. */
export type NatsSource = (
  target: string,
  folder: string,
) => Promise<{ readonly ok: true } | { readonly ok: false; readonly reason: string }>;

const sources: readonly { readonly name: string; readonly fetch: NatsSource }[] = [
  { name: 'the official release', fetch: fetchOfficialRelease },
  { name: "Debian's package", fetch: fetchDebianPackage },
  { name: 'the public container image', fetch: fetchFromDockerImage },
];

export interface FindNatsOptions {
  /** Where a fetched binary is kept, usually `.ambit/bin`. */
  readonly cacheDir: string;
  /** Told, in words for a person, what is being tried. */
  readonly report?: (line: string) => void;
}

export interface NatsBinary {
  readonly path: string;
  readonly version: string;
  readonly origin: string;
}

/**
 * Finds a nats-server of at least {@link MINIMUM_NATS_SERVER}: on PATH, then in the cache, then the official release, Debian's
 * package, a Docker engine's image. Throws an Error that names every choice when none of them works.
 */
export async function findNatsServer(options: FindNatsOptions): Promise<NatsBinary> {
  const report = options.report ?? (() => undefined);
  const onPath = await findOnPath('nats-server');
  const reasons: string[] = [];
  if (onPath === undefined) reasons.push('PATH: no nats-server there');
  else {
    const version = await natsVersion(onPath);
    if (isRecent(version)) return { path: onPath, version, origin: 'PATH' };
    reasons.push(`PATH: ${onPath} is ${version ?? 'not a nats-server'}`);
  }
  const cached = join(options.cacheDir, 'nats-server');
  const cachedVersion = await natsVersion(cached);
  if (isRecent(cachedVersion)) return { path: cached, version: cachedVersion, origin: 'cache' };

  await mkdir(options.cacheDir, { recursive: true });
  for (const source of sources) {
    report(`nats-server: trying ${source.name}`);
    const folder = await mkdtemp(join(options.cacheDir, 'fetch-'));
    try {
      const target = join(folder, 'nats-server');
      const result = await source.fetch(target, folder);
      if (!result.ok) {
        reasons.push(`${source.name}: ${result.reason}`);
        continue;
      }
      await chmod(target, 0o755);
      const version = await natsVersion(target);
      if (!isRecent(version)) {
        reasons.push(`${source.name}: gave ${version ?? 'something that does not run here'}`);
        continue;
      }
      // By rename, so that two starts at once never see half a file.
      await rename(target, cached);
      return { path: cached, version, origin: source.name };
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
  throw new Error(
    [
      `nats-server ${MINIMUM_NATS_SERVER} or newer is needed, and none could be had:`,
      ...reasons.map((reason) => `  - ${reason}`),
      'Any one of these helps:',
      '  - set NATS_URL to a running server with JetStream',
      '  - put a nats-server on PATH (https://github.com/nats-io/nats-server/releases)',
      `  - copy one to ${cached}`,
      '  - start a Docker engine that can pull nats:2.15-alpine',
    ].join('\n'),
  );
}

async function natsVersion(path: string): Promise<string | undefined> {
  const { ok, stdout } = await runCommand(path, ['--version'], { timeoutMs: 5_000 });
  return ok ? /v(\d+\.\d+\.\d+)/.exec(stdout)?.[1] : undefined;
}

/** Whether `version` is {@link MINIMUM_NATS_SERVER} or newer. */
function isRecent(version: string | undefined): version is string {
  if (version === undefined) return false;
  const [have, want] = [version, MINIMUM_NATS_SERVER].map((text) => text.split('.').map(Number));
  for (let index = 0; index < 3; index++) {
    const difference = (have?.[index] ?? 0) - (want?.[index] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}
