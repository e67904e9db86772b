// Servers that people install from npm, and what of each is tried. They answer without a network: what they serve elsewhere is a closed port here.
import type { JsonObject, Server } from '@ambit/contracts';
import { expect } from '@jest/globals';
import { writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const require = createRequire(import.meta.url);
/** Nobody answers there, at once. */
const NOBODY = 'http://127.0.0.1:9';

/** The words of a tool's result. */
export type Calls = (
  tool: string,
  values?: JsonObject,
) => Promise<{ readonly words: string; readonly isError: boolean; readonly result: JsonObject }>;

export interface NpmServer {
  readonly program: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** How it is reached; `http` and `sse` run by themselves, as somebody else’s would. @default 'stdio' */
  readonly over?: 'http' | 'sse';
  readonly protocol: Server['protocol'];
  readonly tools: number;
  /** One call changes something and another reads it back, where the server has such; else what it answers offline. `folder` is its own. */
  readonly tries: (calls: Calls, folder: string) => Promise<void>;
}

/** Its logging goes on and off: the second call knows of the first. */
const toggles: NpmServer['tries'] = async (calls) => {
  expect((await calls('toggle-simulated-logging')).words).toContain('Started');
  expect((await calls('toggle-simulated-logging')).words).toContain('Stopped');
};
const everything = require.resolve('@modelcontextprotocol/server-everything/dist/index.js');

/** By slug. */
export const npmServers: Readonly<Record<string, NpmServer>> = {
  everything: { program: everything, args: ['stdio'], protocol: '2025-11-25', tools: 16, tries: toggles },
  'everything-http': { program: everything, args: ['streamableHttp'], over: 'http', protocol: '2025-11-25', tools: 16, tries: toggles },
  'everything-sse': { program: everything, args: ['sse'], over: 'sse', protocol: '2025-11-25', tools: 16, tries: toggles },
  filesystem: {
    program: require.resolve('@modelcontextprotocol/server-filesystem/dist/index.js'),
    args: ['${FOLDER}'],
    protocol: '2025-11-25',
    tools: 14,
    tries: async (calls, folder) => {
      const path = join(folder, 'note.txt');
      expect(await calls('write_file', { path, content: 'a note' })).toMatchObject({ isError: false });
      expect((await calls('read_text_file', { path })).words).toBe('a note');
      expect(await calls('read_text_file', { path: '/etc/hostname' })).toMatchObject({ isError: true });
    },
  },
  memory: {
    program: require.resolve('@modelcontextprotocol/server-memory/dist/index.js'),
    env: { MEMORY_FILE_PATH: '${FOLDER}/memory.jsonl' },
    protocol: '2025-11-25',
    tools: 9,
    tries: async (calls) => {
      const entities = [{ name: 'Ada', entityType: 'person', observations: ['wrote the first program'] }];
      await calls('create_entities', { entities });
      expect((await calls('read_graph')).result).toMatchObject({ structuredContent: { entities, relations: [] } });
    },
  },
  'sequential-thinking': {
    program: require.resolve('@modelcontextprotocol/server-sequential-thinking/dist/index.js'),
    protocol: '2025-11-25',
    tools: 1,
    tries: async (calls) => {
      for (const thoughtNumber of [1, 2]) {
        const thought = { thought: 'so', nextThoughtNeeded: thoughtNumber === 1, thoughtNumber, totalThoughts: 2 };
        expect((await calls('sequentialthinking', thought)).result).toMatchObject({
          structuredContent: { thoughtHistoryLength: thoughtNumber },
        });
      }
    },
  },
  'hello-world': {
    program: require.resolve('mcp-hello-world/build/stdio.js'),
    protocol: '2025-11-25',
    tools: 3,
    tries: async (calls) => expect((await calls('add', { a: 20, b: 22 })).words).toContain('42'),
  },
  eslint: {
    program: require.resolve('@eslint/mcp/src/mcp-cli.js'),
    protocol: '2025-11-25',
    tools: 1,
    tries: async (calls, folder) => {
      const file = join(folder, 'one.js');
      await writeFile(join(folder, 'eslint.config.js'), 'module.exports = [{ rules: { "no-var": "error" } }];\n');
      await writeFile(file, 'var one = 1;\n');
      expect((await calls('lint-files', { filePaths: [file] })).words).toContain('no-var');
    },
  },
  context7: {
    program: require.resolve('@upstash/context7-mcp/dist/index.js'),
    env: { CONTEXT7_API_URL: NOBODY },
    protocol: '2026-07-28',
    tools: 2,
    tries: async (calls) => {
      const { words } = await calls('resolve-library-id', { query: 'how do I start', libraryName: 'ambit' });
      expect(words).toMatch(/fail|error/i);
    },
  },
  github: {
    program: require.resolve('@modelcontextprotocol/server-github/dist/index.js'),
    protocol: '2024-11-05',
    tools: 26,
    // Before it asks anybody it looks at its arguments.
    tries: async (calls) => expect(calls('search_repositories', { query: 1 })).rejects.toMatchObject({ code: 'TOOL_FAILED' }),
  },
  gitlab: {
    program: require.resolve('@zereight/mcp-gitlab/build/index.js'),
    env: { GITLAB_PERSONAL_ACCESS_TOKEN: 'none', GITLAB_API_URL: `${NOBODY}/api/v4` },
    protocol: '2025-11-25',
    tools: 118,
    tries: async (calls) =>
      expect(calls('get_project', { project_id: '1' })).rejects.toMatchObject({
        code: 'TOOL_FAILED',
        data: { reason: expect.stringContaining('fetch failed') },
      }),
  },
};

/** Servers that do not come up, and the words of the reason that a person has to see. */
export const failing: Readonly<Record<string, Pick<NpmServer, 'program' | 'args' | 'env'> & { readonly says: string }>> = {
  'azure-devops': {
    program: require.resolve('@azure-devops/mcp/dist/index.js'),
    args: ['contoso'],
    says: "ended with code 1; its last words: Error: Cannot find module '../build/Release/keytar.node'",
  },
  supabase: {
    // Its package names its program, and lets nobody resolve it.
    program: join(require.resolve('@supabase/mcp-server-supabase'), '../cli.js'),
    args: ['--api-url', NOBODY],
    env: { SUPABASE_ACCESS_TOKEN: `sbp_${'0'.repeat(40)}` },
    says: 'The server answered tools/list with an error: fetch failed',
  },
};
