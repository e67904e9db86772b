import type { Bus } from '@ambit/bus';
import { SUBAGENT_TOOL } from '@ambit/capability';
import { DELEGATION, DelegatedTask, Fault, sessionService, type Delegation } from '@ambit/contracts';
import { z } from 'zod';
import type { DelegationWaits } from '../delegation.waits.js';
import type { ToolResult } from '../domain/call-end.js';
import { errorResult, textResult, type Builtin, type BuiltinContext } from './builtin.js';

const runId = z.uuid().describe('The id that run or list gave');
const Run = z.strictObject({
  operation: z.literal('run'),
  mode: z.enum(['parallel', 'chain']).default('parallel').describe('chain: one after the other, each with the result before it'),
  tasks: z.array(DelegatedTask).min(1).max(DELEGATION.tasks),
  background: z.boolean().default(false).describe('true: answer at once, and look with info, wait or list'),
  timeoutMs: z.int().min(DELEGATION.timeoutMs.min).max(DELEGATION.timeoutMs.max).default(DELEGATION.timeoutMs.default),
});
const List = z.strictObject({ operation: z.literal('list') });
const Info = z.strictObject({ operation: z.literal('info'), runId });
const Log = z.strictObject({
  operation: z.literal('log'),
  runId,
  task: z
    .int()
    .min(0)
    .max(DELEGATION.tasks - 1)
    .default(0),
  after: z.int().min(0).default(0),
  limit: z.int().min(1).max(100).default(50),
});
const Wait = z.strictObject({
  operation: z.literal('wait'),
  runId,
  timeoutMs: z.int().min(DELEGATION.waitMs.min).max(DELEGATION.waitMs.max).default(DELEGATION.waitMs.default),
});
const Kill = z.strictObject({ operation: z.literal('kill'), runId, reason: z.string().max(200).default('killed by its parent') });
const Input = z.discriminatedUnion('operation', [Run, List, Info, Log, Wait, Kill]);
type Input = z.output<typeof Input>;

/** One schema for all operations, as models take it: what belongs to which is said in words and checked by {@link Input}. */
const Shown = z.toJSONSchema(
  z.object({
    operation: z.enum(['run', 'list', 'info', 'log', 'wait', 'kill']),
    mode: z.enum(['parallel', 'chain']).optional(),
    tasks: z.array(DelegatedTask).min(1).max(DELEGATION.tasks).optional(),
    background: z.boolean().optional(),
    runId: z.string().optional(),
    task: z
      .int()
      .min(0)
      .max(DELEGATION.tasks - 1)
      .optional(),
    after: z.int().min(0).optional(),
    limit: z.int().min(1).max(100).optional(),
    timeoutMs: z.int().min(0).max(DELEGATION.timeoutMs.max).optional().describe('run: from 1 s to 30 min; wait: at most 5 min'),
    reason: z.string().max(200).optional(),
  }),
  { io: 'input' },
);

/** While a foreground run's children end, a moment longer than their time. */
const GRACE_MS = 10_000;

/** Hands work to subagents, which session-service runs in sessions of their own. */
export function subagentBuiltin(bus: Bus, waits: DelegationWaits): Builtin {
  return {
    kind: 'model',
    registration: {
      name: SUBAGENT_TOOL,
      exposure: 'system-model',
      description:
        'Hand work to subagents. run: 1 to 5 tasks {slotId, title, prompt, expectedOutput?}, in parallel or as a chain; list, info, log, wait and kill take what run gave as runId.',
      inputSchema: Shown,
      effect: 'write',
      access: 'delegation',
      parallel: false,
      version: 1,
      requiresConfirmation: false,
    },
    handler: async (input, context) => {
      const parsed = Input.safeParse(input);
      if (!parsed.success) return errorResult(z.prettifyError(parsed.error));
      return parsed.data.operation === 'run' ? run(parsed.data, { bus, waits, context }) : look(parsed.data, { bus, waits, context });
    },
  };
}

interface Using {
  readonly bus: Bus;
  readonly waits: DelegationWaits;
  readonly context: BuiltinContext;
}

async function run({ operation: _operation, ...wanted }: Extract<Input, { operation: 'run' }>, using: Using): Promise<ToolResult> {
  const { bus, waits, context } = using;
  const { sessionId, operationId, authority, signal } = context;
  // Not given up half-way: what was started has to be known to be ended.
  const started = await bus.call(sessionService.startDelegation, { runId: authority.runId, operationId, ...wanted });
  if (wanted.background) return told(started);
  try {
    return told(await waits.ended({ sessionId, id: started.id }, wanted.timeoutMs + GRACE_MS, signal));
  } catch (error) {
    // One that is not there any more was deleted with its session, and has ended already.
    if (isUnknown(error)) return errorResult('the run was deleted with its session.');
    // Stopped: what it started ends with it, whoever asked for the stop.
    if (signal.aborted)
      await bus
        .call(sessionService.killDelegation, { sessionId, id: started.id, reason: 'the call that started it was stopped' })
        .catch((refused: unknown) => {
          if (!isUnknown(refused)) throw refused;
        });
    throw error;
  }
}

async function look(wanted: Exclude<Input, { operation: 'run' }>, { bus, waits, context }: Using): Promise<ToolResult> {
  const { sessionId, signal } = context;
  if (wanted.operation === 'list') {
    const { items } = await bus.call(sessionService.listDelegations, { sessionId }, { signal });
    return textResult(items.length === 0 ? 'Nothing was delegated yet.' : items.map(line).join('\n'), { runs: items.map(shown) });
  }
  const own = { sessionId, id: wanted.runId };
  try {
    switch (wanted.operation) {
      case 'info':
        return told(await bus.call(sessionService.getDelegation, own, { signal }));
      case 'wait':
        return told(await waits.ended(own, wanted.timeoutMs, signal));
      case 'kill':
        return told(await bus.call(sessionService.killDelegation, { ...own, reason: wanted.reason }, { signal }));
      case 'log': {
        const { task, after, limit } = wanted;
        const { entries, next } = await bus.call(sessionService.delegationLog, { ...own, task, after, limit }, { signal });
        return textResult(entries.map(({ id, kind, text }) => `#${id} ${kind}: ${text}`).join('\n') || 'Nothing yet.', { entries, next });
      }
    }
  } catch (error) {
    if (isUnknown(error)) return errorResult('run not found: this session started no such run.');
    throw error;
  }
}

const isUnknown = (error: unknown): boolean => error instanceof Fault && error.code === 'DELEGATION_UNKNOWN';

const shown = ({ id, mode, status, background, tasks, createdAt, endedAt }: Delegation) => ({
  ...{ runId: id, mode, status, background, createdAt, endedAt },
  tasks: tasks.map(({ index, slotId, title, status: standing, summary, fault }) => ({
    ...{ index, slotId, title, status: standing, summary },
    ...(fault === null ? {} : { fault }),
  })),
});

const line = ({ id, status, tasks }: Delegation): string =>
  `${id} ${status}: ${tasks.map(({ title, status: one }) => `${title} (${one})`).join(', ')}`;

/** How a delegation stands, with what its subagents said. One that failed is no failure of the tool. */
function told(delegation: Delegation): ToolResult {
  const parts = delegation.tasks.map(({ index, title, status, summary, fault }) =>
    [
      `[${index}] ${title}: ${status}`,
      ...(summary === null || summary === '' ? [] : [summary]),
      ...(fault === null ? [] : [`${fault.code}: ${fault.message}`]),
    ].join('\n'),
  );
  return textResult([`run ${delegation.id}: ${delegation.status}`, ...parts].join('\n\n'), shown(delegation));
}
