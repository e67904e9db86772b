// OpenAPI 3.1 of the HTTP surface. admin-api makes it from its own route table: `openapiDocument({ version })` in src/openapi.ts.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** The document's text; undefined while admin-api has no route table. */
export async function openapiText(root, version) {
  const folder = join(root, 'apps/admin-api');
  if (!existsSync(join(folder, 'src/openapi.ts'))) return undefined;
  execFileSync('npx', ['--no-install', 'nx', 'run-many', '-t', 'build', '-p', '@ambit/admin-api', '--output-style=static'], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, NX_TUI: 'false' },
  });
  const { openapiDocument } = await import(pathToFileURL(join(folder, 'dist/openapi.js')).href);
  return `${JSON.stringify(openapiDocument({ version }), null, 2)}\n`;
}
