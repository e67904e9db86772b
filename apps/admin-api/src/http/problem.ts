import type { Fault } from '@ambit/contracts';

/** A failure over HTTP, as RFC 9457 has it. `code` and `data` are the API; `detail` is for people. */
export function problemOf(fault: Fault, traceId: string): Readonly<Record<string, unknown>> {
  return {
    type: `urn:ambit:fault:${fault.code}`,
    title: fault.def.message,
    status: fault.status,
    detail: fault.message,
    code: fault.code,
    retry: fault.retry,
    traceId,
    ...(fault.data === undefined ? {} : { data: fault.data }),
  };
}
