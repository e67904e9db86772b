import { operationId } from '@ambit/capability';
import { sessionService, type Output, type TapeEntry } from '@ambit/contracts';
import { z } from 'zod';
import type { Scene } from '../system/scene.js';
import type { EndedRun, TapeCall } from './books.js';
import type { Taken } from './load.js';

const PAGE = 200;
const AT_ONCE = 8;
const Call = z.object({ callId: z.string(), arguments: z.string() });
const Result = z.object({ callId: z.string(), status: z.string() });
const Arguments = z.object({ name: z.string() });

/** Reads what each taken message became: its calls as its tape has them. */
export async function readTapes({ bus }: Scene, taken: readonly Taken[]): Promise<TapeCall[]> {
  const calls: TapeCall[] = [];
  for (let from = 0; from < taken.length; from += AT_ONCE) {
    const read = taken.slice(from, from + AT_ONCE).map(async ({ sessionId, runId }) => {
      const entries: TapeEntry[] = [];
      for (let after: number | null = 0; after !== null;) {
        const page: { readonly items: TapeEntry[]; readonly next: number | null } = await bus.call(sessionService.listTape, {
          sessionId,
          after,
          limit: PAGE,
        });
        entries.push(...page.items);
        after = page.next;
      }
      calls.push(...callsOf(entries, runId));
    });
    await Promise.all(read);
  }
  return calls;
}

/** All runs of an agent, whoever began them. */
export async function readRuns({ bus }: Scene, agentId: string): Promise<EndedRun[]> {
  const runs: EndedRun[] = [];
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const page: Output<typeof sessionService.listRuns> = await bus.call(sessionService.listRuns, {
      agentId,
      limit: PAGE,
      ...(cursor === undefined ? {} : { cursor }),
    });
    runs.push(
      ...page.items.map(({ id, status, attempt: attempts, createdAt, endedAt }) => {
        const tookMs = Date.parse(endedAt ?? new Date().toISOString()) - Date.parse(createdAt);
        return { id, status, attempts, tookMs };
      }),
    );
    cursor = page.cursor;
  }
  return runs;
}

function callsOf(entries: readonly TapeEntry[], originRunId: string): TapeCall[] {
  const results = entries.filter(({ kind }) => kind === 'tool_result').map(({ content }) => Result.parse(content));
  return entries
    .filter(({ kind }) => kind === 'tool_call')
    .map(({ content, step }) => {
      const call = Call.parse(content);
      return {
        operationId: operationId(originRunId, step ?? 0, call.callId),
        runId: originRunId,
        name: Arguments.parse(JSON.parse(call.arguments)).name,
        results: results.filter(({ callId }) => callId === call.callId).map(({ status }) => status),
      };
    });
}
