import { CODE, RpcError } from './json-rpc.js';

/** Where a list goes on; its cursors are places in it. */
export function placeIn(cursor: unknown): number {
  if (cursor === undefined) return 0;
  if (typeof cursor !== 'string' || !/^\d{1,9}$/.test(cursor))
    throw new RpcError(CODE.invalidParams, 'params.cursor is not one that was given out here');
  return Number(cursor);
}
