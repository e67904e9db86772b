// Documents that a package makes of its own values. It has `src/<name>.ts` with one exported function that gives the text or the object;
// the list below says which, and where the document goes.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const CONTRIBUTIONS = [
  {
    package: '@ambit/admin-api',
    folder: 'apps/admin-api',
    module: 'openapi',
    make: 'openapiDocument',
    path: 'docs/generated/openapi.json',
  },
  { package: '@ambit/service', folder: 'libs/service', module: 'metrics-page', make: 'metricsPage', path: 'docs/generated/metrics.md' },
];

/** Path from the root → text, of every contribution whose source is there. `version` is the release's. */
export async function contributedFiles(root, version) {
  const files = new Map();
  for (const { package: name, folder, module, make, path } of CONTRIBUTIONS) {
    if (!existsSync(join(root, folder, 'src', `${module}.ts`))) continue;
    execFileSync('npx', ['--no-install', 'nx', 'run-many', '-t', 'build', '-p', name, '--output-style=static'], {
      cwd: root,
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, NX_TUI: 'false' },
    });
    const made = (await import(pathToFileURL(join(root, folder, 'dist', `${module}.js`)).href))[make]({ version });
    files.set(path, typeof made === 'string' ? made : `${JSON.stringify(made, null, 2)}\n`);
  }
  return files;
}
