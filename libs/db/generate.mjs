// Generates the Prisma client when the schema changed since the last time. Prisma would fetch a native engine that generating
// does not need; any executable in its place keeps it from trying.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const schema = join(root, 'prisma', 'schema');
const generated = join(root, 'libs', 'db', 'src', 'generated');
const stamp = join(generated, '.made-from');
const cli = createRequire(import.meta.url).resolve('prisma/package.json');

const hash = createHash('sha256').update(readFileSync(cli));
for (const name of readdirSync(schema).sort()) hash.update(name).update(readFileSync(join(schema, name)));
const digest = hash.digest('hex');

if (existsSync(stamp) && readFileSync(stamp, 'utf8') === digest) process.exit(0);
const run = spawnSync(process.execPath, [join(dirname(cli), 'build', 'index.js'), 'generate'], {
  cwd: root,
  encoding: 'utf8',
  env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, PRISMA_HIDE_UPDATE_MESSAGE: 'true', CHECKPOINT_DISABLE: '1' },
});
if (run.status !== 0) {
  process.stderr.write(`${run.stdout}${run.stderr}`);
  process.exit(run.status ?? 1);
}
writeFileSync(stamp, digest);
