import { createHash } from 'node:crypto';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runCommand } from './commands.js';
import type { NatsSource } from './nats-binary.js';

const VERSION = '2.15.1';
const RELEASE = `https://github.com/nats-io/nats-server/releases/download/v${VERSION}`;
// A machine without the internet must fall through to the next source while a person is still patient.
const CONNECT_MS = 4_000;
const DOWNLOAD_MS = 120_000;
const MAX_BYTES = 64 * 1024 * 1024;

const platforms: Readonly<Record<string, string>> = { linux: 'linux', darwin: 'darwin', freebsd: 'freebsd' };
const architectures: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64', ia32: '386', ppc64: 'ppc64le', s390x: 's390x' };

/** The official release for this platform, checked against the SHA256SUMS of the same release. */
export const fetchOfficialRelease: NatsSource = async (target, folder) => {
  const platform = platforms[process.platform];
  const architecture = architectures[process.arch];
  if (platform === undefined || architecture === undefined) return { ok: false, reason: `none for ${process.platform} on ${process.arch}` };
  const name = `nats-server-v${VERSION}-${platform}-${architecture}`;
  try {
    const sums = (await download(`${RELEASE}/SHA256SUMS`)).toString('utf8');
    const expected = checksumOf(sums, `${name}.tar.gz`);
    if (expected === undefined) return { ok: false, reason: `its SHA256SUMS does not list ${name}.tar.gz` };
    const archive = await download(`${RELEASE}/${name}.tar.gz`);
    const actual = createHash('sha256').update(archive).digest('hex');
    if (actual !== expected) return { ok: false, reason: `checksum of ${name}.tar.gz is ${actual}, the release says ${expected}` };
    const file = join(folder, 'release.tar.gz');
    await writeFile(file, archive);
    const unpacked = await runCommand('tar', ['-xzf', file, '-C', folder, `${name}/nats-server`], { timeoutMs: 30_000 });
    if (!unpacked.ok) return { ok: false, reason: `tar: ${unpacked.stderr.trim()}` };
    await rename(join(folder, name, 'nats-server'), target);
    return { ok: true };
  } catch (error) {
    return { ok: false, reason: `it could not be had from github.com (${describe(error)})` };
  }
};

/** The hex digest that a `sha256sum` listing gives for a file name. */
function checksumOf(listing: string, fileName: string): string | undefined {
  for (const line of listing.split('\n')) {
    const match = /^([0-9a-f]{64}) [ *](.+)$/.exec(line.trim());
    if (match?.[2] === fileName) return match[1];
  }
  return undefined;
}

async function download(url: string): Promise<Buffer> {
  const abort = new AbortController();
  let timer = setTimeout(() => abort.abort(new Error(`no answer within ${CONNECT_MS / 1_000} s`)), CONNECT_MS);
  try {
    const response = await fetch(url, { signal: abort.signal });
    clearTimeout(timer);
    timer = setTimeout(() => abort.abort(new Error(`not finished within ${DOWNLOAD_MS / 1_000} s`)), DOWNLOAD_MS);
    if (!response.ok || response.body === null) throw new Error(`status ${response.status} for ${url}`);
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of response.body) {
      size += chunk.byteLength;
      if (size > MAX_BYTES) throw new Error(`${url} is larger than ${MAX_BYTES} bytes`);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  } finally {
    clearTimeout(timer);
  }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}
