// Runs before `npm start` and `npm test`, on whatever Node.js the machine has, with nothing installed yet: so no dependency,
// no TypeScript. Installs what package-lock.json says when that has not been done; the Node.js that the lock pins is then first
// on PATH for the scripts that follow.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const modules = join(root, 'node_modules');
const stamp = join(modules, '.ambit-installed');
const OLDEST_NODE = [20, 19];
const REPORT_EVERY_MS = 15_000;

function say(line) {
  process.stdout.write(`ambit  ${line}\n`);
}

function requireNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1])) return;
  process.stderr.write(`Ambit needs Node.js ${OLDEST_NODE.join('.')} or newer to start with; this is ${process.versions.node}.\n`);
  process.exit(1);
}

const lockDigest = () =>
  createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');

function isInstalled() {
  if (existsSync(stamp)) return readFileSync(stamp, 'utf8').trim() === lockDigest();
  // Installed by hand: npm leaves a copy of the lock that it worked from.
  const ownRecord = join(modules, '.package-lock.json');
  return existsSync(ownRecord) && statSync(ownRecord).mtimeMs >= statSync(join(root, 'package-lock.json')).mtimeMs;
}

/** Runs npm itself with this Node.js, so that a wrapper on PATH does not matter. */
function npm(args) {
  const cli = process.env.npm_execpath;
  const isScript = cli !== undefined && /\.c?js$/.test(cli);
  return isScript
    ? spawn(process.execPath, [cli, ...args], { cwd: root, stdio: 'inherit' })
    : spawn('npm', args, { cwd: root, stdio: 'inherit' });
}

function install() {
  const began = Date.now();
  say('installing the packages that package-lock.json names (npm ci); about a minute the first time');
  const ticker = setInterval(() => say(`still installing (${Math.round((Date.now() - began) / 1_000)} s)`), REPORT_EVERY_MS);
  return new Promise((resolve) => {
    const child = npm(['ci', '--no-audit', '--no-fund', '--loglevel=error']);
    child.once('error', () => resolve(127));
    child.once('exit', (code) => resolve(code ?? 1));
  }).then((code) => {
    clearInterval(ticker);
    if (code !== 0) {
      process.stderr.write(`npm ci failed (exit ${code}); what it printed above says why.\n`);
      process.exit(1);
    }
    writeFileSync(stamp, `${lockDigest()}\n`);
    say(`packages installed in ${Math.round((Date.now() - began) / 1_000)} s`);
  });
}

requireNode();
if (!isInstalled()) await install();
else if (!existsSync(stamp)) writeFileSync(stamp, `${lockDigest()}\n`);
