import type { Bus } from '@ambit/bus';
import { Fault, skillStore } from '@ambit/contracts';
import { z } from 'zod';
import { errorResult, textResult, type Builtin } from './builtin.js';

/** The platform's skill that a run has to view before it sees these tools. */
const SKILL = 'ambit-skill-drafting';
const common = {
  exposure: 'user-configurable',
  effect: 'write',
  access: 'session',
  parallel: false,
  version: 1,
  needsSkills: true,
  requiresSkill: SKILL,
} as const;

const Draft = z.strictObject({
  name: z.string().min(1).max(64).describe('Lower-case letters, digits and single hyphens'),
  description: z.string().min(1).max(1_024).describe('What it is for, and when it is to be used'),
  body: z.string().trim().min(1).max(100_000).describe('Markdown: what to do'),
  files: z
    .array(z.strictObject({ path: z.string().max(200), text: z.string().max(100_000) }))
    .max(63)
    .default([])
    .describe('More files, under references/, templates/, scripts/ or assets/'),
});
const Manage = z.strictObject({
  action: z.literal('install'),
  name: z.string().min(1).max(64),
  digest: z.string().length(64).describe('As skill_draft answered it'),
});

/** A session's own proposals of skills; a person makes one of them its agent's. */
export function skillDraftBuiltins(bus: Bus): Builtin[] {
  return [
    {
      kind: 'model',
      registration: {
        ...common,
        name: 'skill_draft',
        description:
          'Write a draft of a skill, in place of this session’s earlier one of that name. It is nobody’s skill until a person agrees.',
        inputSchema: z.toJSONSchema(Draft, { io: 'input' }),
        requiresConfirmation: false,
      },
      handler: async (input, { sessionId, signal }) => {
        const parsed = Draft.safeParse(input);
        if (!parsed.success) return errorResult(z.prettifyError(parsed.error));
        const { name, description, body, files } = parsed.data;
        const text = `---\nname: ${JSON.stringify(name)}\ndescription: ${JSON.stringify(description)}\n---\n\n${body}\n`;
        return said(async () => {
          const draft = await bus.call(skillStore.putDraft, { sessionId, files: [{ path: 'SKILL.md', text }, ...files] }, { signal });
          return textResult(`The draft ${draft.name} has the digest ${draft.digest}.`, draft);
        });
      },
    },
    {
      kind: 'model',
      registration: {
        ...common,
        name: 'skill_manage',
        description: 'Have a draft of this session made a skill of this session’s agent. A person reads it and approves exactly that text.',
        inputSchema: z.toJSONSchema(Manage, { io: 'input' }),
        requiresConfirmation: true,
      },
      handler: async (input, { sessionId, authority, signal }) => {
        const parsed = Manage.safeParse(input);
        if (!parsed.success) return errorResult(z.prettifyError(parsed.error));
        const { agentId, projectId } = authority;
        const { name, digest } = parsed.data;
        return said(async () => {
          const skill = await bus.call(skillStore.installDraft, { sessionId, agentId, projectId, name, digest }, { signal });
          return textResult(`${skill.name} is a skill of this agent now; it is there from the next run on.`, { name, digest, agentId });
        });
      },
    },
  ];
}

/** What the store refuses is the model's to mend. */
const MENDED: ReadonlySet<string> = new Set(['SKILL_INVALID', 'DRAFT_LIMIT', 'DRAFT_UNKNOWN', 'NAME_TAKEN', 'INVALID_INPUT']);
const Reason = z.object({ reason: z.string() });

async function said<T>(work: () => Promise<T>): Promise<T | ReturnType<typeof errorResult>> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Fault) || !MENDED.has(error.code)) throw error;
    const reason = Reason.safeParse(error.data).data?.reason;
    return errorResult(reason === undefined ? error.message : `${error.message}: ${reason}`);
  }
}
