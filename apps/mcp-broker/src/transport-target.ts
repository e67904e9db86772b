import type { Transport } from '@ambit/contracts';
import { httpTarget, inMemoryTarget, serveEcho, type ServerTarget } from '@ambit/mcp';
import type { FetchLike } from '@modelcontextprotocol/client';

/** How to reach a server that the broker holds itself; `values` are its headers with their secrets in place. */
export function targetOf(
  transport: Exclude<Transport, { type: 'stdio' }>,
  values: Readonly<Record<string, string>>,
  fetch: FetchLike,
): ServerTarget {
  if (transport.type === 'inmemory') return inMemoryTarget(serveEcho);
  return httpTarget({ url: new URL(transport.url), headers: values, fetch, isSse: transport.type === 'sse' });
}
