import { QUESTION_TOOL } from '@ambit/capability';
import type { Builtin } from './builtin.js';

/** Asks the person the session is for; the call waits, and its result is the answer. */
export const question: Builtin = {
  kind: 'intercepted',
  registration: {
    name: QUESTION_TOOL,
    exposure: 'user-configurable',
    description:
      'Ask the person a question with one to ten options, and wait for the answer. Use it when going on without an answer would be a guess.',
    // What is wrong with a question is told by its own gate, in words about questions.
    inputSchema: {
      type: 'object',
      properties: {
        header: { description: 'A short title, at most 30 characters' },
        question: { description: 'What to ask, 1 to 500 characters' },
        options: { description: '1 to 10 of {label: at most 30 characters, description?: at most 200}' },
        multiple: { description: 'true: several options may be chosen' },
        custom: { description: 'false: the person may not write an answer of their own' },
      },
    },
    effect: 'read',
    access: 'session',
    parallel: false,
    version: 1,
    requiresConfirmation: false,
  },
};
