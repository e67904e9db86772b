// npm run gen: writes what is read off other files. `--check` writes nothing and fails when a file would change.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from './build.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const isCheck = process.argv.includes('--check');

// Generators read the built packages, so that they run on any Node we support.
await build(() => undefined);

const { asyncapiDocument, validateAsyncapi } = await import('./gen/asyncapi.mjs');
const { faultsPage } = await import('./gen/faults.mjs');
const { subjectsPage } = await import('./gen/subjects.mjs');
const { checkServices, servicesPage, systemPicture } = await import('./gen/system.mjs');
const { metricsPage } = await import('./gen/metrics.mjs');
const { permissionsPage } = await import('./gen/permissions.mjs');
const { manifestSchemaText } = await import('./gen/manifest.mjs');
const { openapiText } = await import('./gen/openapi.mjs');
const { decisionIndex } = await import('./gen/decisions.mjs');

const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const asyncapi = asyncapiDocument(version);
validateAsyncapi(asyncapi);
checkServices();

/** Path from the root → text. */
const files = new Map([
  ['docs/generated/asyncapi.json', `${JSON.stringify(asyncapi, null, 2)}\n`],
  ['docs/generated/faults.md', faultsPage()],
  ['docs/generated/subjects.md', subjectsPage()],
  ['docs/generated/metrics.md', metricsPage(root)],
  ['docs/generated/ambit.schema.json', manifestSchemaText()],
  ['docs/generated/permissions.md', permissionsPage()],
  ['docs/generated/services.md', servicesPage()],
  ['docs/generated/system.mmd', systemPicture()],
  ['docs/decisions/README.md', decisionIndex(root)],
]);
const openapi = await openapiText(root, version);
if (openapi !== undefined) files.set('docs/generated/openapi.json', openapi);

const stale = [];
for (const [path, text] of files) {
  const file = join(root, path);
  if (existsSync(file) && readFileSync(file, 'utf8') === text) continue;
  stale.push(path);
  if (isCheck) continue;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
for (const path of stale) console.log(`${isCheck ? 'out of date' : 'wrote'} ${path}`);
if (isCheck && stale.length > 0) {
  console.error('Run `npm run gen` and commit what it writes.');
  process.exit(1);
}
console.log(`${files.size} generated files ${stale.length === 0 ? 'are as they should be' : 'checked'}`);
