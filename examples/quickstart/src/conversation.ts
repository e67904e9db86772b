import { randomUUID } from 'node:crypto';
import type { AmbitClient, FollowedEvent } from '@ambit/client';
import { CallResult, httpApi, IntendedCall, type TapeEntry } from '@ambit/contracts';
import { dim, short, tell } from './narrator.js';
import type { Setting } from './setting.js';

export type EventOf<T extends FollowedEvent['type']> = Extract<FollowedEvent, { type: T }>;
type CallEnded = EventOf<'call.ended'>['data'];

/** What a followed run has shown. */
export interface Followed {
  readonly calls: readonly CallEnded[];
  readonly runs: readonly EventOf<'run.changed'>['data'][];
}

/** Sends a message of alice over HTTP and gives its session and run. */
export async function send({ alice, agent }: Setting, content: string): Promise<{ readonly sessionId: string; readonly runId: string }> {
  const { sessionId, runId } = await alice.request(httpApi.postMessage, {
    body: { agentId: agent, principal: { id: 'user:alice', kind: 'person', display: 'Alice' }, content, sceneId: 'alice' },
    idempotencyKey: randomUUID(),
  });
  if (runId === null) throw new Error('the message was queued behind a run that is still open; cancel that run and start again');
  return { sessionId, runId };
}

/** Follows a run and its resume runs to the end, telling each call; `onEvent` may act on what happens. */
export async function follow(
  client: AmbitClient,
  runId: string,
  onEvent: (event: FollowedEvent) => Promise<void> = () => Promise.resolve(),
): Promise<Followed> {
  const calls: CallEnded[] = [];
  const runs: EventOf<'run.changed'>['data'][] = [];
  for await (const event of client.follow(runId)) {
    if (event.type === 'run.changed') runs.push(event.data);
    if (event.type === 'call.ended') {
      calls.push(event.data);
      if (event.data.status !== 'waiting') tell(callWords(event.data));
    }
    await onEvent(event);
  }
  return { calls, runs };
}

function callWords({ tool, status, fault, rule, durationMs }: CallEnded): string {
  const time = durationMs === null ? '' : dim(` ${Math.round(durationMs)} ms`);
  return `${status}: ${tool}${fault === null ? '' : `: ${fault.code}: ${fault.message}`}${rule === null ? '' : dim(` by rule ${rule}`)}${time}`;
}

/** The whole tape of a session, in order. */
export async function tapeOf(client: AmbitClient, sessionId: string): Promise<TapeEntry[]> {
  const entries: TapeEntry[] = [];
  for (let after: number | null = 0; after !== null;) {
    const page: { items: TapeEntry[]; next: number | null } = await client.request(httpApi.listTape, {
      params: { id: sessionId },
      query: { after },
    });
    entries.push(...page.items);
    after = page.next;
  }
  return entries;
}

/** Calls of a tape with what came back, by the name of the tool. */
export function resultsOf(
  tape: readonly TapeEntry[],
): ReadonlyMap<string, { readonly status: string; readonly text: string; readonly code: string | undefined }> {
  const names = new Map<string, string>();
  const results = new Map<string, { status: string; text: string; code: string | undefined }>();
  for (const { kind, content } of tape) {
    const call = kind === 'tool_call' ? IntendedCall.safeParse(content) : undefined;
    if (call?.success === true) names.set(call.data.callId, call.data.name);
    const result = kind === 'tool_result' ? CallResult.safeParse(content) : undefined;
    if (result?.success !== true) continue;
    const text = (result.data.content ?? []).map((block) => (typeof block.text === 'string' ? block.text : '')).join(' ');
    results.set(names.get(result.data.callId) ?? '', { status: result.data.status, text, code: result.data.fault?.code });
  }
  return results;
}

/** One entry of a tape on one line. */
export function entryWords({ kind, role, step, content }: TapeEntry): string {
  const text = JSON.stringify(content) ?? '';
  return `${dim(`${kind}${step === null ? '' : ` of step ${step}`}`)} ${role ?? ''} ${text.length > 110 ? `${text.slice(0, 109)}…` : text}`;
}

/** Tells which world a run was given, and checks that its fingerprint is the hash of it. */
export async function snapshotOf(client: AmbitClient, fingerprint: string): Promise<Readonly<Record<string, unknown>>> {
  const snapshot = await client.request(httpApi.getSnapshot, { params: { fingerprint } });
  const count = (field: string) => (Array.isArray(snapshot[field]) ? snapshot[field].length : 0);
  tell(
    `the run sees ${count('tools')} tools, ${count('skills')} skill(s), ${count('plugins')} plugin(s) of ${count('servers')} servers, and nothing else: ${short(fingerprint)}`,
  );
  return snapshot;
}
