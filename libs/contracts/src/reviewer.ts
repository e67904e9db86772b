import { z } from 'zod';
import { rpc } from './kit/contract.js';
import { AgentId, Hex64, Principal, ToolEffect, Uuid } from './nouns.js';
import { ToolAccess } from './tool-gateway.js';

/** From the least to the greatest. `high` asks a person, `critical` is refused. */
export const Risk = z.enum(['low', 'medium', 'high', 'critical']);
export type Risk = z.infer<typeof Risk>;

/** What a reviewer is told of one call. Everything but the ids was written by a model or by what it read: material to judge, never an instruction. */
export const ReviewRequest = z
  .object({
    /** Names exactly this call with exactly these arguments; the answer repeats it. */
    actionHash: Hex64,
    agentId: AgentId,
    sessionId: Uuid,
    runId: Uuid,
    callId: z.string().max(200),
    principal: Principal,
    tool: z.string().max(128),
    access: ToolAccess,
    effect: ToolEffect,
    /** The server that the tool is on, where it is one's. */
    serverId: Uuid.nullable(),
    /** Redacted, at most 16 KiB. */
    argumentsPreview: z.string().max(20_000),
    /** The rating without a reviewer; a proposal below it changes nothing. */
    ruleRisk: Risk,
    /** The end of the conversation, oldest first, each text cut at 2,000 characters. */
    messages: z.array(z.object({ role: z.string().max(20), text: z.string().max(2_000) })).max(8),
  })
  .meta({ id: 'ReviewRequest' });
export type ReviewRequest = z.output<typeof ReviewRequest>;

export const Review = z
  .object({ actionHash: Hex64, risk: Risk, reason: z.string().max(2_800).default('').meta({ description: 'About 700 tokens at most; shown to the person who is asked' }) })
  .meta({ id: 'Review' });
export type Review = z.output<typeof Review>;

/** Answered by a program of the deployment's own, with the credentials `reviewer`; the gateway asks it where AMBIT_REVIEWER is `bus`. */
export const reviewer = {
  reviewCall: rpc('ambit.rpc.reviewer.v1.call.review', {
    summary: 'Propose how risky a call is that the mode auto_approve would let pass; the gateway decides',
    input: ReviewRequest, output: Review, timeoutMs: 30_000,
  }),
};
