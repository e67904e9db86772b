// OpenAPI 3.1 of the HTTP surface. admin-api makes it from its own route table: `openapiDocument({ version })` in src/openapi.ts.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** The document's text; undefined while admin-api has no route table. */
export async function openapiText(root, version) {
  const folder = join(root, 'apps/admin-api');
  if (!existsSync(join(folder, 'src/openapi.ts'))) return undefined;
  const { openapiDocument } = await import(pathToFileURL(join(folder, 'dist/openapi.js')).href);
  return `${JSON.stringify(openapiDocument({ version }), null, 2)}\n`;
}
