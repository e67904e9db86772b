// Compiles what has changed in every workspace, src/*.ts to dist/*.js, with the settings that `npm run build` uses. All in one
// process: nx starts one a workspace, which costs a newcomer's first `npm start` minutes that compiling does not need.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const settings = join(root, '.swcrc');
const record = join(root, '.ambit', 'built.json');
const AT_ONCE = 16;

function filesBelow(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesBelow(path) : [path];
  });
}

const workspaces = () =>
  ['libs', 'apps', 'examples']
    .flatMap((kind) => readdirSync(join(root, kind)).map((name) => join(root, kind, name)))
    .filter((folder) => existsSync(join(folder, 'src')));

const isSource = (file) => file.endsWith('.ts') && !/\.(test|test-d|d)\.ts$/.test(file);
const stateOf = (file) => `${statSync(file).size} ${statSync(file).mtimeMs}`;

/** The database client is made from the schema, and is compiled like the rest. */
function generate() {
  const script = join(root, 'libs', 'db', 'generate.mjs');
  const run = spawnSync(process.execPath, [script], { cwd: root, encoding: 'utf8' });
  if (run.status === 0) return;
  process.stderr.write(`${run.stdout}${run.stderr}\n${relative(root, script)} failed.\n`);
  process.exit(1);
}

/** What stands in a dist folder without its source: a file that was renamed must not be loaded any more. */
function removeStrays(workspace) {
  for (const file of filesBelow(join(workspace, 'dist'))) {
    const source = join(workspace, 'src', relative(join(workspace, 'dist'), file)).replace(/\.js(\.map)?$/, '.ts');
    if (!existsSync(source)) rmSync(file);
  }
}

async function compile({ source, target }) {
  const { transformFile } = await import('@swc/core');
  const { code, map } = await transformFile(source, {
    configFile: settings,
    swcrc: false,
    filename: source,
    sourceFileName: relative(dirname(target), source),
  });
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, `${code}\n//# sourceMappingURL=${basename(target)}.map\n`);
  if (map !== undefined) writeFileSync(`${target}.map`, map);
}

/** Compiles what is out of date, and says so to `say`. A file that does not compile ends the process with the compiler's words. */
export async function build(say) {
  const began = Date.now();
  generate();
  const built = existsSync(record) ? JSON.parse(readFileSync(record, 'utf8')) : {};
  const common = `${stateOf(settings)} ${stateOf(join(root, 'node_modules', '@swc', 'core', 'package.json'))}`;
  const now = {};
  const stale = [];
  for (const workspace of workspaces()) {
    removeStrays(workspace);
    for (const source of filesBelow(join(workspace, 'src')).filter(isSource)) {
      const target = join(workspace, 'dist', relative(join(workspace, 'src'), source)).replace(/\.ts$/, '.js');
      const name = relative(root, source);
      now[name] = `${common} ${stateOf(source)}`;
      if (built[name] !== now[name] || !existsSync(target)) stale.push({ source, target });
    }
  }
  if (stale.length === 0) return;
  say(`building ${stale.length} files`);
  try {
    for (let index = 0; index < stale.length; index += AT_ONCE) await Promise.all(stale.slice(index, index + AT_ONCE).map(compile));
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
    process.exit(1);
  }
  mkdirSync(dirname(record), { recursive: true });
  writeFileSync(record, JSON.stringify(now));
  say(`built in ${((Date.now() - began) / 1_000).toFixed(1)} s`);
}
