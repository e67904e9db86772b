import { createHash, randomBytes } from 'node:crypto';
import { fault, type refusals } from '@ambit/contracts';
import { isOwn, tokenRefusal, type Ref, type WorkerRefusal } from './domain/attempt.js';
import type { Attempt, RunRecord } from './domain/run-state.js';
import { runs } from './run.repository.js';
import type { Reader } from './transactions.repository.js';

/** Any of the worker contracts' calls: each declares these refusals. */
interface WorkerContract {
  readonly errors: Pick<typeof refusals, WorkerRefusal>;
}

export interface FromWorker {
  readonly contract: WorkerContract;
  /** The agent in the subject: never what a body says. */
  readonly agentId: string;
  readonly ref: Ref & { readonly token: string };
}

export const hashOf = (token: string): string => createHash('sha256').update(token).digest('hex');
export const newToken = (): string => randomBytes(32).toString('base64url');

/** The run and its attempts, where the caller's agent, references and token are right. Throws the refusal otherwise. */
export async function guarded(
  db: Reader,
  from: FromWorker,
  options: { readonly lock: boolean } = { lock: false },
): Promise<{ run: RunRecord; attempts: Attempt[] }> {
  const { run, attempts, refusal } = await known(db, from, options);
  if (refusal !== null) throw fault(from.contract, refusal);
  return { run, attempts };
}

/** As {@link guarded}, but says a refusal by the token instead of throwing it. */
export async function known(db: Reader, from: FromWorker, options: { readonly lock: boolean } = { lock: false }) {
  const { contract, agentId, ref } = from;
  const found = await runs.find(db, ref.runId);
  if (!isOwn(found, agentId, ref)) throw fault(contract, 'TOOL_NOT_IN_SNAPSHOT');
  // Somebody else's request never takes a lock.
  const run = options.lock ? ((await runs.lock(db, ref.runId)) ?? found) : found;
  const attempts = await runs.attempts(db, run.id);
  return { run, attempts, refusal: tokenRefusal(run, attempts, hashOf(ref.token)) };
}
