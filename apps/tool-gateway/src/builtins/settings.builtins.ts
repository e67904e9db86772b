import type { Bus } from '@ambit/bus';
import { policyToDocument } from '@ambit/capability';
import { AgentAdjustment, Fault, sessionService } from '@ambit/contracts';
import { z } from 'zod';
import { errorResult, objectSchema, textResult, type Builtin } from './builtin.js';

/** The platform's skill that a run has to view before it sees these tools. */
const SKILL = 'ambit-settings';
const common = {
  exposure: 'user-configurable',
  access: 'settings',
  parallel: false,
  version: 1,
  needsSkills: true,
  requiresSkill: SKILL,
} as const;

/** An agent's own settings: read freely, changed with one approval for each change, and never widened. */
export function settingsBuiltins(bus: Bus): Builtin[] {
  return [
    {
      kind: 'model',
      registration: {
        ...common,
        name: 'settings_read',
        description: 'This agent’s own settings: instructions, model, permission mode, what it may use, limits.',
        inputSchema: objectSchema({}),
        effect: 'read',
        requiresConfirmation: false,
      },
      handler: async (_input, { authority, signal }) => {
        const { id, model, instructions, policy, version } = await bus.call(sessionService.getAgent, { id: authority.agentId }, { signal });
        const settings = { id, version, model, instructions, policy: policyToDocument(policy) };
        return textResult(JSON.stringify(settings, null, 2), settings);
      },
    },
    {
      kind: 'model',
      registration: {
        ...common,
        name: 'settings_write',
        description:
          'Change this agent’s own settings. A person approves each change; nothing can be widened. It holds from the next run on.',
        inputSchema: { ...z.toJSONSchema(AgentAdjustment, { io: 'input' }), minProperties: 1 },
        effect: 'write',
        requiresConfirmation: true,
      },
      handler: async (input, { operationId, signal }) => {
        const change = AgentAdjustment.safeParse(input);
        if (!change.success) return errorResult(z.prettifyError(change.error));
        try {
          const { version } = await bus.call(sessionService.adjustAgent, { operationId, change: change.data }, { signal });
          return textResult(`Changed: ${Object.keys(change.data).join(', ')}. It holds from the next run on.`, { version });
        } catch (error) {
          if (error instanceof Fault && error.code === 'ADJUSTMENT_WIDENS')
            return errorResult(`Nothing was changed. ${error.message}: ${reasonOf(error)}`);
          throw error;
        }
      },
    },
  ];
}

const Widening = z.object({ reason: z.string() });
const reasonOf = ({ data }: Fault): string => Widening.safeParse(data).data?.reason ?? 'it widens';
