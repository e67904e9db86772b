// `npm start`: builds what has changed, then becomes the supervisor of the whole stack (apps/stack).
// Again, for machines where npm is told to run no script before another one; what is installed costs nothing.
await import('./bootstrap.mjs');
const { build } = await import('./build.mjs');
await build((line) => process.stdout.write(`ambit  ${line}\n`));
await import('../apps/stack/dist/main.js');
