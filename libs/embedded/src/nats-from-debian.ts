import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findOnPath, runCommand } from './commands.js';
import type { NatsSource } from './nats-binary.js';

const SOURCES = '/etc/apt/sources.list';
const SOURCE_PARTS = '/etc/apt/sources.list.d';
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';
// The first Debian whose nats-server is new enough.
const SUITE = 'forky';

/**
 * The nats-server of a newer Debian, downloaded with this machine's own mirror and signing keys into a folder of its own.
 * Nothing is installed, so any user may do it.
 */
export const fetchDebianPackage: NatsSource = async (target, folder) => {
  if (process.platform !== 'linux' || (await findOnPath('apt-get')) === undefined || (await findOnPath('dpkg')) === undefined)
    return { ok: false, reason: 'not a Debian machine' };
  const mirror = debianMirror(await readAptSources());
  if (mirror === undefined) return { ok: false, reason: 'no Debian mirror in the apt sources of this machine' };

  const lists = join(folder, 'lists');
  const cache = join(folder, 'cache');
  await mkdir(join(lists, 'partial'), { recursive: true });
  await mkdir(join(cache, 'archives', 'partial'), { recursive: true });
  const sourceList = join(folder, 'sources.list');
  await writeFile(sourceList, `deb [signed-by=${KEYRING}] ${mirror} ${SUITE} main\n`);
  const options = [
    '-qq',
    '-o',
    `Dir::Etc::SourceList=${sourceList}`,
    '-o',
    'Dir::Etc::SourceParts=/dev/null',
    '-o',
    `Dir::State::Lists=${lists}`,
    '-o',
    `Dir::Cache=${cache}`,
    // apt's own download user cannot enter a home directory that is closed to others.
    '-o',
    'APT::Sandbox::User=root',
    // A mirror may be a frozen copy: its signature counts, its date does not.
    '-o',
    'Acquire::Check-Valid-Until=false',
    '-o',
    'Acquire::Retries=1',
  ];
  const updated = await runCommand('apt-get', [...options, 'update'], { timeoutMs: 120_000 });
  if (!updated.ok) return { ok: false, reason: firstLine(updated.stderr) };
  const downloaded = await runCommand('apt-get', [...options, 'download', 'nats-server'], { timeoutMs: 120_000, cwd: folder });
  if (!downloaded.ok) return { ok: false, reason: firstLine(downloaded.stderr) };
  const archive = (await readdir(folder)).find((name) => name.startsWith('nats-server_') && name.endsWith('.deb'));
  if (archive === undefined) return { ok: false, reason: 'apt-get downloaded nothing' };
  const unpacked = await runCommand('dpkg', ['-x', join(folder, archive), join(folder, 'x')], { timeoutMs: 30_000 });
  if (!unpacked.ok) return { ok: false, reason: firstLine(unpacked.stderr) };
  await copyFile(join(folder, 'x', 'usr', 'sbin', 'nats-server'), target);
  return { ok: true };
};

/** The first Debian archive named in apt source text, in the one-line or the deb822 form; no trailing slash. */
function debianMirror(sources: string): string | undefined {
  for (const line of sources.split('\n')) {
    const match = /^(?:deb (?:\[[^\]]*\] )?|URIs: *)([a-z+]+:\/\/[^ ]+\/debian)\/?(?: |$)/.exec(line);
    if (match?.[1] !== undefined) return match[1];
  }
  return undefined;
}

async function readAptSources(): Promise<string> {
  const parts = await readdir(SOURCE_PARTS).catch(() => []);
  const files = [SOURCES, ...parts.filter((name) => /\.(list|sources)$/.test(name)).map((name) => join(SOURCE_PARTS, name))];
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8').catch(() => '')));
  return texts.join('\n');
}

function firstLine(text: string): string {
  return text.trim().split('\n')[0] ?? '';
}
