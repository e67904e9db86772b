import { Fault } from '@ambit/contracts';
import { CODE, RpcError } from './json-rpc.js';

/** Statuses that say how HTTP itself fared; everything else is said by the answer. */
const STATUS: Readonly<Record<string, number>> = { UNAVAILABLE: 503, TIMEOUT: 504, RATE_LIMITED: 429, INTERNAL: 500 };

/** A failure as a client is told it: a fault by its code, anything else by a trace id alone. */
export function failureOf(error: unknown, traceId: string): RpcError {
  if (error instanceof RpcError) return error;
  if (!(error instanceof Fault))
    return new RpcError(CODE.internal, 'Something went wrong here; quote the trace id', { status: 500, data: { traceId } });
  const status = STATUS[error.code];
  return new RpcError(status === undefined ? CODE.refused : CODE.internal, error.message, {
    data: { code: error.code, retry: error.retry },
    ...(status === undefined ? {} : { status }),
  });
}
