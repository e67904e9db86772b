// What no linter looks at: hosts, machine paths, leftovers, licences, long files, unexplained exceptions.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const LONGEST = 400;
const tracked = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root, encoding: 'utf8' })
  .split('\0')
  .filter((file) => file !== '' && existsSync(join(root, file)));
const complaints = [];

const BINARY = /\.(png|ico|gz|tgz|zip|woff2?|wasm)$/;
const CODE = /\.(ts|mjs|js|prisma)$/;
/** Files that name a forbidden thing to forbid it, and what npm writes. */
const isExempt = (file) => file === 'package-lock.json' || file === 'tools/hygiene.mjs';

/** A line that matches is wrong; the sentence says what would be right. */
const lines = [
  // A tree that names one network's registry or mirror only works there.
  [
    /\b(registry|mirror|proxy|artifactory|nexus)[a-z0-9-]*\.[a-z0-9.-]*[a-z]{2,}(:\d+)?\//i,
    'names a registry or mirror; the machine’s own configuration says where packages come from',
  ],
  [/(^|[\s"'`(=:])\/(home|root|Users|work)\/[a-z0-9_-]+/i, 'names a path of one machine'],
  [/(^|[\s"'`(=:])\/tmp\/[a-z0-9_-]+\//i, 'names a path under /tmp; ask the system for a temporary folder'],
  [/\b(TO[D]O|FIX[M]E|X[X]X)\b/, 'is a leftover; open an issue or do it'],
  [/^(<{7}|>{7}) /, 'is a merge conflict'],
];
for (const file of tracked) {
  if (isExempt(file) || BINARY.test(file)) continue;
  const text = readFileSync(join(root, file), 'utf8').split('\n');
  text.forEach((line, index) => {
    for (const [pattern, says] of lines) if (pattern.test(line)) complaints.push(`${file}:${index + 1} ${says}`);
    if (/eslint-disable(?!-.*-- \S|.* -- \S)/.test(line) && CODE.test(file) && file !== 'tools/hygiene.mjs') {
      complaints.push(`${file}:${index + 1} switches a rule off without a reason; write "-- why" after it`);
    }
  });
  const isSource = CODE.test(file) && !file.startsWith('docs/generated/');
  if (isSource && text.length > LONGEST && !text.slice(0, 20).some((line) => /long because/i.test(line))) {
    complaints.push(`${file} has ${text.length} lines; part it, or say "Long because …" in a comment at its top`);
  }
}

// Every package that ships must be free to use under MIT's terms. Read from what is installed, not from what the lock claims.
const FREE =
  /^(MIT|MIT-0|ISC|BSD|BSD-[23]-Clause|Apache-2\.0|0BSD|Unlicense|CC0-1\.0|CC-BY-[34]\.0|BlueOak-1\.0\.0|PostgreSQL|Python-2\.0|Zlib|WTFPL)$/;
/** Packages whose package.json points elsewhere; each was read by a person, where it says so. */
const READ = new Map([
  // MIT, by the last section of its README; the quickstart starts it as a child process.
  ['@modelcontextprotocol/server-everything@2026.8.31', 'MIT'],
  ['@modelcontextprotocol/server-memory@2026.8.31', 'MIT'],
]);
const licenceOf = ({ license, licenses }) => {
  if (typeof license === 'string') return license;
  if (typeof license === 'object' && license !== null) return license.type;
  return Array.isArray(licenses) ? licenses.map(({ type }) => type).join(' OR ') : 'none stated';
};
/** `A OR B` is free when one is, `A AND B` when both are. */
const isFree = (licence) =>
  licence
    .replace(/[()]/g, '')
    .split(' OR ')
    .some((choice) => choice.split(' AND ').every((part) => FREE.test(part.trim())));

const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
let packages = 0;
for (const [path, entry] of Object.entries(lock.packages)) {
  // `devOptional`: the Prisma command, which builds need and the generated client only names as an optional peer.
  if (!path.includes('node_modules/') || entry.dev === true || entry.devOptional === true || entry.link === true) continue;
  const manifest = join(root, path, 'package.json');
  // An optional package for another platform is not here; its siblings of the same release are.
  if (!existsSync(manifest)) continue;
  packages += 1;
  const own = JSON.parse(readFileSync(manifest, 'utf8'));
  const licence = READ.get(`${own.name}@${own.version}`) ?? licenceOf(own);
  if (!isFree(licence)) complaints.push(`${own.name}@${own.version} has the licence "${licence}", which does not fit a product under MIT`);
}

for (const complaint of complaints) console.error(complaint);
if (complaints.length > 0) {
  console.error(`\n${complaints.length} ${complaints.length === 1 ? 'complaint' : 'complaints'}`);
  process.exit(1);
}
console.log(`hygiene: ${tracked.length} files, ${packages} packages that ship`);
