#!/usr/bin/env node
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const main = new URL('../dist/main.js', import.meta.url);
if (!existsSync(fileURLToPath(main))) {
  process.stderr.write('ambit is not built yet: run `npm run build` (or `npm start`) in the repository first\n');
  process.exit(1);
}
await import(main.href);
