// Lets a tool import the tree's TypeScript as it stands (types are stripped by Node itself): `./x.js` means `./x.ts` where only that is there.
import { existsSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';

registerHooks({
  resolve(specifier, context, next) {
    if (/^\.{1,2}\/.*\.js$/.test(specifier) && context.parentURL !== undefined) {
      const url = new URL(specifier.replace(/\.js$/, '.ts'), context.parentURL);
      if (!existsSync(fileURLToPath(new URL(specifier, context.parentURL))) && existsSync(fileURLToPath(url)))
        return next(url.href, context);
    }
    return next(specifier, context);
  },
});
