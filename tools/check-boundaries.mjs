// The canary: the boundary rule passes in silence when it has no project graph, so a green lint may have looked at nothing.
// Here bad imports are written into scratch files, linted through nx, and each must be refused by the rule that is there for it.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const name = `canary-${process.pid}`;

/** Each bad file: where it stands, what it says, and the rule that must refuse it. */
const birds = [
  {
    file: `libs/contracts/src/${name}.ts`,
    text: "import { Injectable } from '@nestjs/common';\nexport const canary = Injectable;\n",
    rule: '@nx/enforce-module-boundaries',
    says: 'contracts load nothing but zod',
  },
  {
    file: `libs/worker/src/${name}.ts`,
    text: "import * as bus from '@ambit/bus';\nexport const canary = bus;\n",
    rule: '@nx/enforce-module-boundaries',
    says: 'a published package sees no shell',
  },
  {
    file: `apps/skill-store/src/${name}.ts`,
    text: "import * as other from '../../tool-gateway/src/main.js';\nexport const canary = other;\n",
    rule: '@nx/enforce-module-boundaries',
    says: 'no app imports another',
  },
  {
    file: `apps/skill-store/src/domain/${name}.ts`,
    text: "import { readFileSync } from 'node:fs';\nexport const canary = () => [readFileSync, Date.now()];\n",
    rule: 'no-restricted-imports',
    says: 'a domain file does no I/O',
  },
  {
    file: `apps/skill-store/src/domain/${name}-clock.ts`,
    text: 'export const canary = () => Date.now();\n',
    rule: 'no-restricted-properties',
    says: 'a domain file has no clock',
  },
  {
    file: `apps/skill-store/src/${name}.handlers.ts`,
    text: "import * as repository from './skill.repository.js';\nexport const canary = repository;\n",
    rule: 'no-restricted-imports',
    says: 'handlers never import a repository',
  },
  {
    file: `apps/tool-gateway/src/${name}-subject.ts`,
    text: "export const canary = 'ambit.rpc.skill-store.v1.skill.get';\n",
    rule: 'no-restricted-syntax',
    says: 'subjects are said in libs/contracts alone',
  },
];

const made = [];
function remove() {
  for (const { file } of birds) rmSync(join(root, file), { force: true });
  // Only what was made here, and only if nobody put something into it meanwhile.
  for (const directory of made.splice(0).reverse()) if (existsSync(directory) && readdirSync(directory).length === 0) rmdirSync(directory);
}
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => (remove(), process.exit(130)));

let report;
try {
  for (const { file, text } of birds) {
    const path = join(root, file);
    const missing = [];
    for (let directory = dirname(path); !existsSync(directory); directory = dirname(directory)) missing.unshift(directory);
    for (const directory of missing) {
      mkdirSync(directory);
      made.push(directory);
    }
    writeFileSync(path, text);
  }
  const files = birds.map(({ file }) => file).join(' ');
  const run = promisify(execFile)(
    'npx',
    [
      '--no-install',
      'nx',
      'run',
      'ambit:lint',
      `--files=${files} --format=json`,
      '--output-style=stream-without-prefixes',
      '--skip-nx-cache',
    ],
    {
      cwd: root,
      maxBuffer: 64 * 1024 * 1024,
      env: { ...process.env, NX_TUI: 'false', NO_COLOR: '1', FORCE_COLOR: '0' },
    },
  );
  // Lint is expected to fail, so both ends carry what it printed.
  report = await run.then(
    ({ stdout }) => stdout,
    (error) => `${error.stdout ?? ''}\n${error.stderr ?? ''}`,
  );
} finally {
  remove();
}

const json = report.split('\n').find((line) => line.startsWith('[{'));
if (json === undefined) {
  console.error(`canary: lint printed no report.\n${report}`);
  process.exit(1);
}
const results = JSON.parse(json);
const asleep = birds.filter(({ file, rule }) => {
  const result = results.find(({ filePath }) => filePath.endsWith(file));
  return result === undefined || !result.messages.some(({ ruleId }) => ruleId === rule);
});
for (const { file, rule, says } of asleep) console.error(`canary: ${rule} let ${file} pass (${says})`);
if (asleep.length > 0) process.exit(1);
console.log(`canary: ${birds.length} bad files, each refused by its rule`);
