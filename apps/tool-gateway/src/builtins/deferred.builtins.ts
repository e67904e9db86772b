import type { Bus } from '@ambit/bus';
import { Fault, sessionService, type ToolRegistration } from '@ambit/contracts';
import { z } from 'zod';
import { errorResult, textResult, type Builtin } from './builtin.js';

const Discover = z.strictObject({
  query: z.string().trim().max(200).default('').describe('Words that the name or description has; none lists all'),
  limit: z.int().min(1).max(50).default(20),
});
const Load = z.strictObject({ name: z.string().min(1).max(128) });

const registration = (name: string, description: string, input: z.ZodType): ToolRegistration => ({
  name,
  exposure: 'system-model',
  description,
  inputSchema: z.toJSONSchema(input, { io: 'input' }),
  effect: 'read',
  access: 'session',
  parallel: false,
  version: 1,
  requiresConfirmation: false,
  needsDeferred: true,
});

/** Finds and loads tools that a session sees by name alone. */
export function deferredBuiltins(bus: Bus): Builtin[] {
  return [
    {
      kind: 'model',
      registration: registration(
        'tool_discover',
        'Find more tools of yours, by words of their names and descriptions. Load one with tool_load before you call it.',
        Discover,
      ),
      handler: (input, { snapshot }) => {
        const parsed = Discover.safeParse(input);
        if (!parsed.success) return Promise.resolve(errorResult(z.prettifyError(parsed.error)));
        const words = parsed.data.query
          .toLowerCase()
          .split(/\s+/)
          .filter((word) => word !== '');
        const found = (snapshot.deferred ?? []).filter(({ name, description }) => {
          const text = `${name} ${description}`.toLowerCase();
          return words.every((word) => text.includes(word));
        });
        const tools = found.slice(0, parsed.data.limit);
        const lines = tools.map(({ name, description }) => `${name}: ${description}`);
        const rest = found.length > tools.length ? [`${found.length - tools.length} more; use other words.`] : [];
        return Promise.resolve(textResult([...lines, ...rest].join('\n') || 'No tool has these words.', { tools }));
      },
    },
    {
      kind: 'model',
      registration: registration(
        'tool_load',
        'Have one of the tools that tool_discover finds. It can be called from your next step on; a session loads twelve at most.',
        Load,
      ),
      handler: async (input, { authority }) => {
        const parsed = Load.safeParse(input);
        if (!parsed.success) return errorResult(z.prettifyError(parsed.error));
        try {
          const { loaded } = await bus.call(sessionService.loadTool, { runId: authority.runId, name: parsed.data.name });
          return textResult(`${parsed.data.name} can be called from your next step on.`, { loaded });
        } catch (error) {
          if (error instanceof Fault && error.code === 'TOOL_NOT_IN_SNAPSHOT')
            return errorResult(`There is no tool ${parsed.data.name} to load.`);
          if (error instanceof Fault && error.code === 'LOADED_TOOLS_LIMIT') return errorResult(error.message);
          throw error;
        }
      },
    },
  ];
}
