import {
  RequestError,
  type ReadTextFileRequest,
  type ReadTextFileResponse,
  type WriteTextFileRequest,
  type WriteTextFileResponse,
} from '@agentclientprotocol/sdk';
import { relative } from 'node:path';
import type { Folders, Place } from '../workspace/folders.js';
import { PathProblem } from '../workspace/path-problem.js';
import { readText, writeText } from '../workspace/text-file.js';
import { reach } from './place.js';

const FILE_BYTES = 10 * 1024 * 1024;

/** Files of a workspace for an agent of the protocol. */
export class Files {
  constructor(private readonly at: { readonly folders: Folders; readonly place: Place }) {}

  read({ path, line, limit }: ReadTextFileRequest): Promise<ReadTextFileResponse> {
    if (line !== undefined && line !== null && line < 1) throw RequestError.invalidParams({ line }, 'lines count from 1');
    if (limit !== undefined && limit !== null && limit < 1) throw RequestError.invalidParams({ limit }, 'the limit is one line or more');
    return reach(this.at, path, async (spot) => {
      if (spot.stats === undefined) throw RequestError.resourceNotFound(path);
      const text = await readText(spot, FILE_BYTES);
      const first = (line ?? 1) - 1;
      if (first === 0 && (limit ?? null) === null) return { content: text };
      const lines = text.split('\n');
      return { content: lines.slice(first, limit === undefined || limit === null ? undefined : first + limit).join('\n') };
    });
  }

  /** Folders that are missing are made. */
  write({ path, content }: WriteTextFileRequest): Promise<WriteTextFileResponse> {
    if (Buffer.byteLength(content) > FILE_BYTES) throw RequestError.invalidParams({ path }, `a file has at most ${FILE_BYTES} bytes`);
    return reach(this.at, path, async (spot, home) => {
      // A link on the way would have it written elsewhere than where the agent says.
      if (spot.path !== relative(home, path)) throw new PathProblem('outside', path);
      await writeText(spot, content);
      return {};
    });
  }
}
