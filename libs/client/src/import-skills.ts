import { httpApi, skillStore, type RouteOutput } from '@ambit/contracts';
import { z } from 'zod';
import { problemOf, Unreachable } from './ambit-error.js';
import { readAnswer } from './answer.js';
import type { AmbitClient } from './client.js';
import { readEvents } from './event-stream.js';

export type ImportRequest = z.input<typeof httpApi.executeImport.body>;
export interface ImportProgress {
  readonly done: number;
  readonly total: number;
  /** Of the skill that was stored last. */
  readonly name: string;
}
export interface ImportOptions {
  readonly onProgress?: (progress: ImportProgress) => void;
  readonly signal?: AbortSignal;
}

/** Imports skills as previewed. What is said of each stands in the answer; what concerns all of them is thrown. */
export async function importSkills(
  client: AmbitClient,
  body: ImportRequest,
  { onProgress, signal }: ImportOptions,
): Promise<RouteOutput<typeof httpApi.executeImport>> {
  const headers = { accept: 'text/event-stream' };
  const response = await client.open(httpApi.executeImport, { body, headers, ...(signal === undefined ? {} : { signal }) });
  for await (const { event, data } of response.body === null ? [] : readEvents(response.body)) {
    if (event === 'import.finished') return readAnswer(httpApi.executeImport, data);
    if (event === 'import.failed')
      throw problemOf(data) ?? new Unreachable(`${client.url} says in no form that is known here that it failed`);
    const progress = event === 'import.progressed' ? skillStore.importProgressed.payload.safeParse(JSON.parse(data)) : undefined;
    if (progress?.success === true) onProgress?.(progress.data);
  }
  throw new Unreachable(`${client.url} broke off before the import had ended; it may have taken effect, so preview again`);
}
