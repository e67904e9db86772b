import type { JsonObject } from '@ambit/contracts';
import { ProtocolError } from '@modelcontextprotocol/client';
import type { AnswerAsk } from './asks.js';
import { isRecord } from './records.js';

/** How often one call may be put down to ask for something. */
export const ROUNDS = 10;
const ASKS_OF_A_ROUND = 16;

/** What goes back with the next request of the same call. */
export interface Round {
  readonly inputResponses?: JsonObject;
  readonly requestState?: string;
}

/** Answers everything that an `input_required` result asks for, one after the other, and keeps the server's own state untouched. */
export async function answerRound(
  result: Readonly<Record<string, unknown>>,
  { answer, signal }: { readonly answer: AnswerAsk; readonly signal: AbortSignal },
): Promise<Round> {
  const { inputRequests, requestState } = result;
  const asked = isRecord(inputRequests) ? Object.entries(inputRequests) : [];
  if (asked.length > ASKS_OF_A_ROUND) throw new ProtocolError(-32_602, `A server may ask for ${ASKS_OF_A_ROUND} things at a time`);
  const inputResponses: JsonObject = {};
  // Together: who is asked may be asked for all of them at once.
  const answers = await Promise.all(
    asked.map(async ([key, request]) => {
      const method = isRecord(request) && typeof request['method'] === 'string' ? request['method'] : '';
      const params = isRecord(request) && isRecord(request['params']) ? request['params'] : {};
      return [key, await answer({ method, params, signal, key })] as const;
    }),
  );
  for (const [key, given] of answers) inputResponses[key] = given;
  return { ...(asked.length === 0 ? {} : { inputResponses }), ...(typeof requestState === 'string' ? { requestState } : {}) };
}

/** What servers of the revision 2025-11-25 refuse a call with until somebody has opened an address. */
const URL_REQUIRED = -32_042;

/** The addresses that an error asks to have opened, as questions; none where it is another error. */
export function addressesToOpen(error: unknown): readonly JsonObject[] {
  if (!(error instanceof ProtocolError) || error.code !== URL_REQUIRED || !isRecord(error.data)) return [];
  const listed: readonly unknown[] = Array.isArray(error.data['elicitations']) ? error.data['elicitations'] : [];
  return listed
    .filter(isRecord)
    .slice(0, ASKS_OF_A_ROUND)
    .map((one) => ({ ...one, mode: 'url' }));
}
