// `npm start`: builds what has changed, then becomes the supervisor of the whole stack (apps/stack).
import { build } from './build.mjs';

await build((line) => process.stdout.write(`ambit  ${line}\n`));
await import('../apps/stack/dist/main.js');
