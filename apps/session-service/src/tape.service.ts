import { excerptOf } from '@ambit/capability';
import { fault, sessionService, type Output, type Parsed, type TapeEntry } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import type { StoredEntry } from './domain/tape.js';
import { sessions } from './session.repository.js';
import { tape } from './tape.repository.js';
import { Transactions } from './transactions.repository.js';

/** A reply stays below what a message may hold. */
const PAGE_BYTES = 400 * 1024;
const EXCERPT_BYTES = 2_000;

const publicEntry = (sessionId: string, { id, runId, kind, step, role, content, at }: StoredEntry): TapeEntry => ({
  id,
  sessionId,
  runId,
  kind,
  step,
  role,
  content,
  at,
});

/** Reads tapes, for people and for the tools that search them. */
@Injectable()
export class TapeService {
  constructor(private readonly transactions: Transactions) {}

  async list({ sessionId, after, limit, newest }: Parsed<typeof sessionService.listTape>): Promise<Output<typeof sessionService.listTape>> {
    if ((await sessions.find(this.transactions.read, sessionId)) === undefined) throw fault(sessionService.listTape, 'SESSION_UNKNOWN');
    const entries = newest
      ? (await tape.newest(this.transactions.read, sessionId, { before: undefined, limit })).toReversed()
      : await tape.list(this.transactions.read, sessionId, { after, limit: limit + 1 });
    const items: TapeEntry[] = [];
    let left = PAGE_BYTES;
    for (const entry of entries.slice(0, limit)) {
      const item = publicEntry(sessionId, entry);
      const bytes = Buffer.byteLength(JSON.stringify(item));
      if (bytes > left && items.length > 0) break;
      items.push(bytes > PAGE_BYTES ? { ...item, content: { truncated: true, bytes } } : item);
      left -= bytes;
    }
    if (newest) return { items: items.reverse(), next: null };
    return { items, next: items.length < entries.length ? (items.at(-1)?.id ?? null) : null };
  }

  async search({
    sessionId,
    scope,
    query,
    limit,
    kinds,
    start,
    end,
  }: Parsed<typeof sessionService.searchTape>): Promise<Output<typeof sessionService.searchTape>> {
    const sessionIds = [
      ...(scope === 'linked_subagents' ? [] : [sessionId]),
      ...(scope === 'current' ? [] : await sessions.descendants(this.transactions.read, sessionId)),
    ];
    const text = query.replaceAll('\u0000', ' ');
    const found = await tape.search(this.transactions.read, { sessionIds, text, kinds, start, end, limit });
    return { entries: found.map(({ text: passage, ...entry }) => ({ ...entry, excerpt: excerptOf(passage, EXCERPT_BYTES) })) };
  }

  async context({
    sessionId,
    sourceSessionId = sessionId,
    entryIds,
    before,
    after,
    limit,
    entryBytes,
    totalBytes,
  }: Parsed<typeof sessionService.tapeContext>): Promise<Output<typeof sessionService.tapeContext>> {
    // What is no subagent's session of this one is answered like one that does not exist.
    if (sourceSessionId !== sessionId && !(await sessions.descendants(this.transactions.read, sessionId)).includes(sourceSessionId))
      throw fault(sessionService.tapeContext, 'SESSION_UNKNOWN');
    const wanted = new Set(entryIds.flatMap((id) => Array.from({ length: before + after + 1 }, (_unused, offset) => id - before + offset)));
    const found = (await tape.around(this.transactions.read, sourceSessionId, [...wanted])).slice(0, limit);
    let left = totalBytes;
    const entries = found.flatMap(({ id, kind, text, at }) => {
      const cut = excerptOf(text, Math.min(entryBytes, left));
      left -= Buffer.byteLength(cut);
      return cut === '' && text !== '' ? [] : [{ id, kind, text: cut, truncated: cut.length < text.length, at }];
    });
    return { entries };
  }
}
