import { z } from 'zod';
import type { FaultDef } from './kit/fault.js';

/**
 * Why a call was refused or how it failed: the codes that stand in the results of `batch.execute`, and that several
 * contracts share. A refusal never tells whether a thing that is not the caller's exists.
 */
export const refusals = {
  TOOL_NOT_IN_SNAPSHOT: { status: 404, retry: 'never', message: 'No such tool, run or session for this caller; use the tools of the snapshot this run was given' },
  TOOL_DISABLED: { status: 403, retry: 'never', message: 'This tool is disabled for the session by the agent’s policy' },
  TOOL_GONE: { status: 410, retry: 'never', message: 'What provides this tool was taken away since the snapshot; a new run sees what is there now' },
  TARGET_CHANGED: { status: 409, retry: 'never', message: 'The tool’s target changed since the snapshot; refresh the run and try again' },
  CATALOG_DRIFT: { status: 409, retry: 'never', message: 'The server offers this tool otherwise than the snapshot has it from the plugin’s package; nothing was done, and a new run sees the tool as it is', data: z.object({ tool: z.string() }) },
  NOT_MODEL_CALLABLE: { status: 403, retry: 'never', message: 'This tool is not for models to call' },
  BAD_ARGUMENTS: { status: 400, retry: 'never', message: 'The arguments must be a JSON object that fits the tool’s input schema, as in the stored step', data: z.object({ reason: z.string() }) },
  SERVER_NOT_ALLOWED: { status: 403, retry: 'never', message: 'The agent’s policy does not allow this server' },
  PLUGIN_POLICY_DENIED: { status: 403, retry: 'never', message: 'The agent’s policy does not allow this plugin' },
  AGENT_DISABLED: { status: 403, retry: 'never', message: 'The agent is switched off' },
  POLICY_DENIED: { status: 403, retry: 'never', message: 'A rule of the agent’s policy denies this call', data: z.object({ rule: z.string() }) },
  DENIED: { status: 403, retry: 'never', message: 'The person who was asked denied this call' },
  APPROVAL_EXPIRED: { status: 403, retry: 'never', message: 'Nobody decided in time' },
  APPROVAL_CAPACITY: { status: 429, retry: 'later', message: 'Too many decisions are pending in this session; answer some first', data: z.object({ limit: z.int() }) },
  CALL_LIMIT: { status: 429, retry: 'never', message: 'The run has made as many calls as it may', data: z.object({ limit: z.int() }) },
  RATE_LIMITED: { status: 429, retry: 'later', message: 'Too many calls in this minute', data: z.object({ limit: z.int(), retryAfterMs: z.int() }) },
  OUTPUT_TRUNCATED: { status: 422, retry: 'never', message: 'The model’s output was cut off, so none of the step’s calls was executed; say it again, shorter' },
  INDETERMINATE: { status: 409, retry: 'never', message: 'The call was started and its end is unknown; a person has to look before anybody repeats it' },
  TURN_ENDED: { status: 409, retry: 'never', message: 'The run has ended or waits for a decision; acknowledge the job and go on' },
  STALE_INSTANCE: { status: 409, retry: 'never', message: 'A newer attempt of this run holds the token' },
  SERVER_UNAVAILABLE: { status: 503, retry: 'later', message: 'The server that provides this tool could not be reached; nothing was done', data: z.object({ reason: z.string() }) },
  AUTHORIZATION_REQUIRED: { status: 403, retry: 'never', message: 'The server takes this call only after somebody signed in to it; nothing was done', data: z.object({ serverId: z.string(), credentials: z.enum(['shared', 'agent', 'user']), reason: z.string() }) },
  CALL_TIMEOUT: { status: 504, retry: 'never', message: 'The tool did not answer in time; it may have had its effect' },
  RESULT_TOO_LARGE: { status: 413, retry: 'never', message: 'The result is larger than may be taken; the call has happened', data: z.object({ limitBytes: z.int(), actualBytes: z.int().optional() }) },
  SKILL_NOT_ACTIVE: { status: 403, retry: 'never', message: 'Scripts run only of a skill of this session whose SKILL.md was viewed in this run; view it first' },
  SCRIPT_NOT_ENABLED: { status: 403, retry: 'never', message: 'No administrator enabled this script of the skill as it is now' },
  TOOL_FAILED: { status: 502, retry: 'never', message: 'The tool answered with an error', data: z.object({ reason: z.string() }) },
  OUTSIDE_WORKSPACE: { status: 403, retry: 'never', message: 'The path leads out of the session’s workspace, or through a link that does', data: z.object({ path: z.string() }) },
  SUBAGENT_UNAVAILABLE: {
    status: 403,
    retry: 'never',
    message: 'This session may not delegate: it is a subagent’s own, its policy lists no subagents, or none of them is left',
    data: z.object({ reason: z.enum(['unsupported_session', 'policy_disabled', 'no_valid_slots']) }),
  },
  DELEGATION_LIMIT: { status: 429, retry: 'later', message: 'This session has as many delegations at work as it may; wait for one or kill one', data: z.object({ limit: z.int() }) },
  QUESTION_INVALID: { status: 400, retry: 'never', message: 'A question has a header of at most 30 characters, 1 to 500 characters of text and 1 to 10 options', data: z.object({ reason: z.string() }) },
} as const satisfies Record<string, FaultDef>;

export type RefusalCode = keyof typeof refusals;

/** Several declared refusals by name, for a contract's `errors`. */
export function refusing<const K extends readonly RefusalCode[]>(...codes: K): Pick<typeof refusals, K[number]> {
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions -- fromEntries forgets which keys it was given
  return Object.fromEntries(codes.map((code) => [code, refusals[code]])) as Pick<typeof refusals, K[number]>;
}
