import { access, chmod, chown, constants, lstat, mkdir, realpath, stat } from 'node:fs/promises';
import { delimiter, dirname, isAbsolute, join, parse } from 'node:path';

/** Who a server runs as. `uid` is undefined where it is the runner's own user; `says` is the sentence for the status. */
export interface ChildUser {
  readonly uid: number | undefined;
  readonly gid: number | undefined;
  /** The server's own folder. */
  readonly home: string;
  readonly says: string;
}

export interface ChildUserOptions {
  /** `auto`, `same`, or a numeric uid. */
  readonly wanted: string;
  /** The runner's own uid; undefined where the platform has none. */
  readonly ownUid: number | undefined;
  /** Folders of servers are made below it. */
  readonly dataFolder: string;
  readonly serverId: string;
  /** Paths that the server must be able to read: its program and whatever its arguments name. */
  readonly paths: readonly string[];
}

/** A uid of nobody's: below the ids of people, above those of services, so that it owns no file that counts. */
const UNPRIVILEGED = 65_534;

/**
 * Chooses another, unprivileged user for a server where the runner is root and that user can reach what it must run;
 * otherwise the runner's own, and says why. Makes the server's own folder.
 */
export async function childUserFor(options: ChildUserOptions): Promise<ChildUser> {
  const home = join(options.dataFolder, options.serverId);
  await ownFolder(options.dataFolder, options.ownUid);
  const same = async (why: string): Promise<ChildUser> => {
    await mkdir(home, { recursive: true, mode: 0o700 });
    return {
      uid: undefined,
      gid: undefined,
      home,
      says: `the runner’s own user${options.ownUid === undefined ? '' : ` (uid ${options.ownUid})`}: ${why}`,
    };
  };
  if (options.wanted === 'same') return same('so configured');
  if (options.ownUid !== 0) return same('only a runner that is root can start servers as another user');
  const uid = options.wanted === 'auto' ? UNPRIVILEGED : Number(options.wanted);
  for (const path of options.paths) {
    const wall = await wallBefore(path, uid);
    if (wall !== undefined) return same(`uid ${uid} cannot reach ${wall}`);
  }
  await mkdir(home, { recursive: true, mode: 0o700 });
  await chown(home, uid, uid);
  const wall = await wallBefore(home, uid);
  if (wall !== undefined) return same(`uid ${uid} cannot reach ${wall}`);
  return { uid, gid: uid, home, says: `uid ${uid}, which owns nothing else` };
}

/** Makes the folder of all servers, which each may pass and none may list. Throws when somebody else made it first. */
async function ownFolder(path: string, ownUid: number | undefined): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o711 });
  const facts = await lstat(path);
  if (!facts.isDirectory() || (ownUid !== undefined && facts.uid !== ownUid))
    throw new Error(`${path} is not a folder of the runner’s own; set AMBIT_RUNNER_DATA to one that is`);
  await chmod(path, 0o711);
}

/** The file that a command names, links resolved; undefined where there is none. */
export async function findCommand(command: string, path: string): Promise<string | undefined> {
  const candidates = command.includes('/') ? [command] : path.split(delimiter).map((folder) => join(folder, command));
  for (const candidate of candidates) {
    const isRunnable = await access(candidate, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isRunnable) return realpath(candidate);
  }
  return undefined;
}

/** The first part of a path that another user may not pass or read; undefined where it may, or where nothing is there. */
async function wallBefore(path: string, uid: number): Promise<string | undefined> {
  if (!isAbsolute(path)) return undefined;
  const { root } = parse(path);
  const parts: string[] = [];
  for (let at = path; at !== root; at = dirname(at)) parts.unshift(at);
  for (const part of [root, ...parts]) {
    const facts = await stat(part).catch(() => undefined);
    if (facts === undefined) return undefined;
    const shift = facts.uid === uid ? 6 : facts.gid === uid ? 3 : 0;
    const bits = (facts.mode >> shift) & 0o7;
    const needed = facts.isDirectory() ? 0o1 : 0o4;
    if ((bits & needed) !== needed) return part;
  }
  return undefined;
}
