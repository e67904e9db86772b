import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import type { Io } from './io.js';
import { UsageError } from './usage-error.js';

export interface Connection {
  readonly url: string;
  readonly token: string;
}
const StackFile = z.object({ apiUrl: z.string(), tokenFile: z.string() });

/** Where the API is and with which token: from options, else from AMBIT_URL and AMBIT_TOKEN, else from the stack that runs in this folder. */
export async function findConnection(given: { readonly url?: string; readonly token?: string }, io: Io): Promise<Connection> {
  const url = given.url ?? io.env['AMBIT_URL'];
  const token = given.token ?? io.env['AMBIT_TOKEN'];
  if (url !== undefined && token !== undefined) return { url, token };
  const stack = await findStack(io);
  // The token of a stack is for that stack alone.
  if (stack !== undefined && (url === undefined || sameOrigin(url, stack.url))) return { url: stack.url, token: token ?? stack.token };
  if (url === undefined)
    throw new UsageError('Which Ambit? Give --url or AMBIT_URL, or run this below a folder where `npm start` is running.');
  throw new UsageError('There is no token for that address; give --token or AMBIT_TOKEN.');
}

async function findStack(io: Io): Promise<Connection | undefined> {
  const home = io.env['AMBIT_HOME'];
  for (const folder of home === undefined ? parents(io.cwd).map((parent) => join(parent, '.ambit')) : [home]) {
    const text = await readFile(join(folder, 'stack.json'), 'utf8').catch(() => undefined);
    if (text === undefined) continue;
    const stack = StackFile.safeParse(JSON.parse(text));
    if (!stack.success) return undefined;
    const token = await readFile(stack.data.tokenFile, 'utf8').catch(() => undefined);
    return token === undefined ? undefined : { url: stack.data.apiUrl, token: token.trim() };
  }
  return undefined;
}

function parents(folder: string): string[] {
  const above = dirname(folder);
  return above === folder ? [folder] : [folder, ...parents(above)];
}

function sameOrigin(left: string, right: string): boolean {
  return URL.canParse(left) && URL.canParse(right) && new URL(left).origin === new URL(right).origin;
}
