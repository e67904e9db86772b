// A copy of the tree in a temporary folder, with the same installed packages and its own workspaces.
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** What is built or generated, and therefore not among the tracked files. */
const BUILT = /^(libs|apps|examples)\/[^/]+\/(dist|src\/generated)$/;

/** Makes the copy; returns its folder and what removes it. */
export function copyTree(root) {
  const copy = mkdtempSync(join(tmpdir(), 'ambit-mutants-'));
  // Run as root, the tests start PostgreSQL as another user, who must be able to enter.
  chmodSync(copy, 0o711);
  const tracked = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root, encoding: 'utf8' });
  for (const file of tracked.split('\0').filter((name) => name !== '' && existsSync(join(root, name)))) {
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    cpSync(join(root, file), join(copy, file));
  }
  for (const group of ['libs', 'apps', 'examples']) {
    for (const name of readdirSync(join(root, group))) {
      for (const built of ['dist', 'src/generated']) copyBuilt({ root, copy, path: `${group}/${name}/${built}` });
      linkPackages(join(root, group, name, 'node_modules'), join(copy, group, name, 'node_modules'));
    }
  }
  linkPackages(join(root, 'node_modules'), join(copy, 'node_modules'));
  // The programs that tests start are fetched once for a tree.
  const programs = join('.ambit', 'bin');
  if (existsSync(join(root, programs))) {
    mkdirSync(join(copy, '.ambit'), { recursive: true });
    symlinkSync(join(root, programs), join(copy, programs));
  }
  return { copy, remove: () => rmSync(copy, { recursive: true, force: true }) };
}

function copyBuilt({ root, copy, path }) {
  if (BUILT.test(path) && existsSync(join(root, path))) cpSync(join(root, path), join(copy, path), { recursive: true });
}

/** Links installed packages one by one; a link into the tree (a workspace) is made anew, so that it leads into the copy. */
function linkPackages(from, to) {
  if (!existsSync(from)) return;
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(from)) {
    const path = join(from, name);
    if (name.startsWith('@') && !lstatSync(path).isSymbolicLink()) linkPackages(path, join(to, name));
    else if (lstatSync(path).isSymbolicLink()) symlinkSync(readlinkSync(path), join(to, name));
    else symlinkSync(path, join(to, name));
  }
}
