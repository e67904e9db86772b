import { expect, it } from '@jest/globals';
import { lastWords } from './last-words.js';

it.each([
  [
    'a crash of Node',
    "node:internal:1\n  const err = 1;\n        ^\n\nError: Cannot find module 'x'\nRequire stack:\n- /a/b.js\n    at f (/a/b.js:1:1) {\n  code: 'MODULE_NOT_FOUND'\n}\n\nNode.js v24.21.0\n",
    "Error: Cannot find module 'x'",
  ],
  [
    'a traceback',
    'Traceback (most recent call last):\n  File "a.py", line 1\nModuleNotFoundError: No module named x\n',
    'ModuleNotFoundError: No module named x',
  ],
  ['a sentence', 'starting\ngiving up: no disk\n\n', 'giving up: no disk'],
  ['an error before the last line', 'ERROR: no key\nsee the manual\n', 'ERROR: no key'],
  ['colours', '\u001b[31mInvalid token\u001b[39m\n', 'Invalid token'],
  ['nothing', '\n  \n}\n', undefined],
])('the last words of %s', (_of, output, words) => {
  expect(lastWords(output)).toBe(words);
});
