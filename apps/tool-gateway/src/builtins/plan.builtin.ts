import { z } from 'zod';
import type { PlanRepository } from '../plan.repository.js';
import { errorResult, textResult, type Builtin } from './builtin.js';

const PlanInput = z.strictObject({
  explanation: z.string().max(1_000).optional(),
  plan: z.array(z.strictObject({ step: z.string().min(1).max(500), status: z.enum(['pending', 'in_progress', 'completed']) })).max(50),
});

/** Keeps the session's plan; the newest replaces the one before. */
export function planBuiltin(plans: PlanRepository): Builtin {
  return {
    kind: 'model',
    registration: {
      name: 'update_plan',
      exposure: 'user-configurable',
      description: 'Keep the plan of this session up to date: its steps and how far each is. At most one step is in progress.',
      inputSchema: z.toJSONSchema(PlanInput, { io: 'input' }),
      effect: 'write',
      access: 'session',
      parallel: false,
      version: 1,
      requiresConfirmation: false,
    },
    handler: async (input, { sessionId }) => {
      const parsed = PlanInput.safeParse(input);
      if (!parsed.success) return errorResult(z.prettifyError(parsed.error));
      if (parsed.data.plan.filter((step) => step.status === 'in_progress').length > 1)
        return errorResult('At most one step of a plan is in progress.');
      await plans.put(sessionId, parsed.data.plan, new Date());
      return textResult('The plan is kept.', { plan: parsed.data.plan });
    },
  };
}
