import { randomFillSync } from 'node:crypto';

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

// One system call fills many ids: a call to the random source costs more than the rest of a header.
const pool = Buffer.alloc(4_096);
let used = pool.length;

function randomHex(bytes: number): string {
  if (used + bytes > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const hex = pool.toString('hex', used, used + bytes);
  used += bytes;
  return hex;
}

/** Continues a W3C trace with a new span, or begins one when `parent` is absent or malformed. */
export function continueTrace(parent: string | undefined): string {
  const match = parent === undefined || parent === '' ? null : TRACEPARENT.exec(parent);
  return match === null ? `00-${randomHex(16)}-${randomHex(8)}-01` : `00-${match[1]}-${randomHex(8)}-${match[3]}`;
}

/** The 32 hex digits that every line and fault of one trace shares. */
export function traceIdOf(traceparent: string): string {
  return traceparent.slice(3, 35);
}
