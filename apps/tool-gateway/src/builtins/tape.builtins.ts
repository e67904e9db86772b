import type { Bus } from '@ambit/bus';
import { Fault, sessionService, TapeScope, type Input, type Output, type TapeEntry } from '@ambit/contracts';
import { z } from 'zod';
import { errorResult, objectSchema, textResult, type Builtin } from './builtin.js';

const KINDS = ['message', 'tool_call', 'tool_result', 'anchor', 'event'] as const;
/** A moment as ISO text or milliseconds. */
const Written = z.union([z.iso.datetime(), z.int().min(0).max(8.64e15)]);
const Moment = Written.transform((value) => new Date(value).toISOString());
const SearchInput = z.strictObject({
  query: z.string().trim().min(1).max(500).regex(/\S/, 'must not be blank'),
  limit: z.int().min(1).max(50).default(20),
  kinds: z.array(z.enum(KINDS)).max(5).optional(),
  start: Moment.optional(),
  end: Moment.optional(),
  scope: TapeScope.default('current').meta({ description: 'Whose tape: this session’s, that of its subagents’ sessions, or both' }),
});
const ContextInput = z.strictObject({
  sourceSessionId: z.uuid().optional().meta({ description: 'A subagent’s session, as tape_search names it; otherwise this one' }),
  entryIds: z.array(z.int().min(1)).min(1).max(20),
  before: z.int().min(0).max(20).default(2),
  after: z.int().min(0).max(20).default(2),
  limit: z.int().min(1).max(100).default(50),
  entryBytes: z.int().min(1).max(8_192).default(2_048),
  totalBytes: z.int().min(1).max(65_536).default(16_384),
});

const model = {
  exposure: 'system-model',
  effect: 'read',
  access: 'session',
  parallel: true,
  version: 1,
  requiresConfirmation: false,
} as const;
const diagnostic = { ...model, exposure: 'diagnostic' } as const;
const schemaOf = (type: z.ZodType): Record<string, unknown> => z.toJSONSchema(type, { io: 'input' });

/** Search and context of the session's own tape for models; its size and anchors for administrators. */
export function tapeBuiltins(bus: Bus): Builtin[] {
  return [
    {
      kind: 'model',
      registration: {
        ...model,
        name: 'tape_search',
        description: 'Search what was said and done earlier in this session.',
        inputSchema: schemaOf(SearchInput.extend({ start: Written.optional(), end: Written.optional() })),
      },
      handler: async (input, { sessionId, signal }) => {
        const wanted = SearchInput.safeParse(input);
        if (!wanted.success) return errorResult(z.prettifyError(wanted.error));
        const { entries } = await bus.call(sessionService.searchTape, { sessionId, ...wanted.data }, { signal });
        return textResult(
          entries.length === 0
            ? 'Nothing found.'
            : entries.map((entry) => `#${entry.id}${elsewhere(entry, sessionId)} ${entry.kind} ${entry.at}: ${entry.excerpt}`).join('\n'),
          { entries },
        );
      },
    },
    {
      kind: 'model',
      registration: {
        ...model,
        name: 'tape_context',
        description: 'Read entries of this session’s tape by number, with their neighbours.',
        inputSchema: schemaOf(ContextInput),
      },
      handler: async (input, { sessionId, signal }) => {
        const wanted = ContextInput.safeParse(input);
        if (!wanted.success) return errorResult(z.prettifyError(wanted.error));
        const entries = await around(bus, { sessionId, ...wanted.data }, signal);
        if (entries === undefined) return errorResult('No subagent of this session works in that session.');
        return textResult(
          entries.map((entry) => `#${entry.id} ${entry.kind} ${entry.at}${entry.truncated ? ' (cut)' : ''}\n${entry.text}`).join('\n\n'),
          { entries },
        );
      },
    },
    {
      kind: 'diagnostic',
      registration: {
        ...diagnostic,
        name: 'tape_info',
        description: 'How many entries of each kind a session’s tape has, and its span.',
        inputSchema: objectSchema({}),
      },
      handler: async (_input, sessionId) => {
        const entries = await wholeTape(bus, sessionId);
        const kinds = Object.fromEntries(KINDS.map((kind) => [kind, entries.filter((entry) => entry.kind === kind).length]));
        const info = { entries: entries.length, kinds, first: entries[0]?.at ?? null, last: entries.at(-1)?.at ?? null };
        return textResult(JSON.stringify(info), info);
      },
    },
    {
      kind: 'diagnostic',
      registration: { ...diagnostic, name: 'tape_anchors', description: 'The anchors of a session’s tape.', inputSchema: objectSchema({}) },
      handler: async (_input, sessionId) => {
        const anchors = (await wholeTape(bus, sessionId))
          .filter((entry) => entry.kind === 'anchor')
          .map(({ id, content, at }) => ({ id, content, at }));
        return textResult(JSON.stringify(anchors), { anchors });
      },
    },
    {
      kind: 'runtime',
      registration: {
        ...model,
        parallel: false,
        effect: 'write',
        exposure: 'runtime-only',
        name: 'tape_handoff',
        description: 'Marks where another run takes the tape over.',
        inputSchema: objectSchema({}),
      },
    },
  ];
}

const elsewhere = (entry: { readonly sessionId: string }, sessionId: string): string =>
  entry.sessionId === sessionId ? '' : ` of ${entry.sessionId}`;

type Around = Output<typeof sessionService.tapeContext>['entries'];

async function around(bus: Bus, wanted: Input<typeof sessionService.tapeContext>, signal: AbortSignal): Promise<Around | undefined> {
  try {
    return (await bus.call(sessionService.tapeContext, wanted, { signal })).entries;
  } catch (error) {
    if (error instanceof Fault && error.code === 'SESSION_UNKNOWN') return undefined;
    throw error;
  }
}

const MAX_ENTRIES = 10_000;

async function wholeTape(bus: Bus, sessionId: string): Promise<TapeEntry[]> {
  const entries: TapeEntry[] = [];
  for (let after: number | null = 0; after !== null && entries.length < MAX_ENTRIES;) {
    const page: { items: TapeEntry[]; next: number | null } = await bus.call(sessionService.listTape, { sessionId, after, limit: 200 });
    entries.push(...page.items);
    after = page.next;
  }
  return entries;
}
