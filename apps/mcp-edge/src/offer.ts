import type { Json } from './domain/json-rpc.js';

/** Who we say we are. */
export const SERVER_INFO = { name: 'ambit', title: 'Ambit', version: '0.1.0' } as const;

/** What we can do for a client. */
export function capabilities(): Json {
  return {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
    completions: {},
    logging: {},
    extensions: { 'io.modelcontextprotocol/skills': { directoryRead: true } },
  };
}
