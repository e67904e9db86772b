// Leaves in a built tree only what the named workspaces need when they run: keep-production.mjs apps/init apps/admin-api …
// `npm ci --omit=dev` is not enough: it keeps a development tool that another package *may* use (an optional peer), and that
// tool's hundreds of packages, under licences that an image for production should not carry.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { posix } from 'node:path';

const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'));
const wanted = process.argv.slice(2);
const unknown = wanted.filter((path) => packages[path] === undefined);
if (wanted.length === 0 || unknown.length > 0) {
  process.stderr.write(`keep-production: name workspaces, such as apps/init; ${unknown.join(', ') || 'none'} is not one\n`);
  process.exit(2);
}

/** Where Node.js would find `name` from the package at `from`, following the links of workspaces. */
function find(name, from) {
  for (let folder = from; ; folder = posix.dirname(folder)) {
    const path = posix.join(folder === '.' ? '' : folder, 'node_modules', name);
    const entry = packages[path];
    if (entry !== undefined) return entry.link === true ? [path, entry.resolved] : [path];
    if (folder === '.' || folder === '') return [];
  }
}

function needs({ dependencies = {}, optionalDependencies = {}, peerDependencies = {}, peerDependenciesMeta = {} }) {
  const peers = Object.keys(peerDependencies).filter((name) => peerDependenciesMeta[name]?.optional !== true);
  return [...Object.keys(dependencies), ...Object.keys(optionalDependencies), ...peers];
}

const kept = new Set(wanted);
for (const path of kept) {
  for (const name of needs(packages[path])) for (const found of find(name, path)) kept.add(found);
}
let removed = 0;
for (const path of Object.keys(packages)) {
  if (path === '' || kept.has(path) || !existsSync(path)) continue;
  rmSync(path, { recursive: true, force: true });
  removed += 1;
}
process.stdout.write(`kept ${kept.size} packages and workspaces, removed ${removed}\n`);
