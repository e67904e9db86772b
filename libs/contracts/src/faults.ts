import { z } from 'zod';
import { Fault, type FaultDef } from './kit/fault.js';

/** Platform faults: any call may answer with one, no contract redeclares one. */
export const platformFaults = {
  INVALID_INPUT: { status: 400, retry: 'never', message: 'The request does not have the shape this call takes', data: z.object({ issues: z.array(z.object({ path: z.string(), message: z.string() })) }) },
  UNAUTHENTICATED: { status: 401, retry: 'never', message: 'Send a valid token' },
  FORBIDDEN: { status: 403, retry: 'never', message: 'This caller may not do that' },
  TOO_LARGE: { status: 413, retry: 'never', message: 'The message is larger than this call takes', data: z.object({ limitBytes: z.int(), actualBytes: z.int().optional() }) },
  CANCELLED: { status: 499, retry: 'never', message: 'The request was cancelled' },
  INTERNAL: { status: 500, retry: 'never', message: 'Something went wrong here; quote the trace id', data: z.object({ traceId: z.string() }) },
  UNAVAILABLE: { status: 503, retry: 'later', message: 'Nobody answers this just now; nothing was done' },
  TIMEOUT: { status: 504, retry: 'never', message: 'No answer in time; the request may have taken effect' },
} as const satisfies Record<string, FaultDef>;

export type PlatformCode = keyof typeof platformFaults;

/** What the HTTP API answers with before a request has reached any route. */
export const httpFaults = {
  ROUTE_UNKNOWN: { status: 404, retry: 'never', message: 'There is no such resource in this API; /v1/openapi.json lists them' },
  METHOD_NOT_ALLOWED: { status: 405, retry: 'never', message: 'This resource takes other methods; the Allow header lists them' },
} as const satisfies Record<string, FaultDef>;

/** Makes a platform fault. `data` must have the shape that {@link platformFaults} declares for the code. */
export function platformFault(code: PlatformCode, data?: unknown, message?: string): Fault {
  return new Fault(code, platformFaults[code], data, message);
}
