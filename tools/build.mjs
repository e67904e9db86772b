// Builds every workspace when a source has changed since the last time. nx has a cache of its own, but needs seconds to find
// that there is nothing to do, and `npm start` is typed often.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const stamp = join(root, '.ambit', 'built');
const WORKSPACES = ['libs', 'apps', 'examples'];

function filesBelow(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === 'node_modules' || entry.name === 'dist' ? [] : filesBelow(path);
    return entry.isFile() ? [path] : [];
  });
}

/** Everything that a build reads, by path, size and time of change. */
function fingerprint() {
  const files = [
    ...WORKSPACES.flatMap((folder) => filesBelow(join(root, folder))),
    ...filesBelow(join(root, 'prisma')),
    join(root, '.swcrc'),
    join(root, 'package-lock.json'),
  ];
  const hash = createHash('sha256');
  for (const file of files.sort()) {
    const { size, mtimeMs } = statSync(file);
    hash.update(`${relative(root, file)}\0${size}\0${mtimeMs}\n`);
  }
  return hash.digest('hex');
}

const isBuilt = () =>
  existsSync(stamp) && readFileSync(stamp, 'utf8') === fingerprint() && existsSync(join(root, 'apps', 'stack', 'dist', 'main.js'));

/** Runs an npm script quietly; its output is shown only when it fails. */
function script(name) {
  const result = spawnSync('npm', ['run', '-s', name], {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, NX_DAEMON: 'false', NX_TUI: 'false' },
  });
  if (result.status === 0) return;
  process.stderr.write(`${result.stdout ?? ''}${result.stderr ?? ''}\nnpm run ${name} failed.\n`);
  process.exit(1);
}

/** Builds what is out of date, and says so to `say`. */
export function build(say) {
  if (isBuilt()) return;
  const began = Date.now();
  say('building');
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  if (scripts.generate !== undefined) script('generate');
  script('build');
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, fingerprint());
  say(`built in ${Math.round((Date.now() - began) / 1_000)} s`);
}
