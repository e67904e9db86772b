import { egressFetch, sentenceOf } from '@ambit/mcp';
import type { FetchLike } from '@modelcontextprotocol/client';

/** No document or token answer of an honest authorization server is larger. */
const LIMIT_BYTES = 256 * 1024;
const TIMEOUT_MS = 10_000;
const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);

/** An endpoint that could not be asked: it may work another time, and says nothing about the credentials. */
export class EndpointUnreachable extends Error {
  override readonly name = 'EndpointUnreachable';
}

/** Why an address that a server or issuer named is not called; undefined where it may be. `home` is the server's own origin, as its configuration has it. */
export function endpointProblem(url: URL, home: string): string | undefined {
  if (url.username !== '' || url.password !== '') return `${url.origin} was named with a name and password in its address`;
  if (url.protocol === 'https:' || url.origin === home) return undefined;
  if (url.protocol === 'http:' && LOOPBACK.has(url.hostname)) return undefined;
  return `${url.origin} is not reached over https`;
}

/** Makes a `fetch` for discovery, registration and tokens, which judges every address anew: the servers themselves say where to go. */
export function oauthFetches(allows: (address: string) => boolean): (home: URL, signal?: AbortSignal) => FetchLike {
  const fetch = egressFetch({ allows, limitBytes: LIMIT_BYTES });
  return (home, signal) =>
    async (input, init = {}) => {
      const url = new URL(input);
      const problem = endpointProblem(url, home.origin);
      if (problem !== undefined) throw new EndpointUnreachable(problem);
      const signals = [AbortSignal.timeout(TIMEOUT_MS), ...(signal === undefined ? [] : [signal]), ...(init.signal ? [init.signal] : [])];
      const body = init.body instanceof URLSearchParams ? init.body.toString() : init.body;
      const response = await fetch(url, { ...init, ...(body === undefined ? {} : { body }), signal: AbortSignal.any(signals) }).catch(
        (error: unknown) => {
          throw new EndpointUnreachable(`${url.origin} could not be asked: ${sentenceOf(error)}`, { cause: error });
        },
      );
      if (response.status >= 500) throw new EndpointUnreachable(`${url.origin} answered with status ${response.status}`);
      return response;
    };
}
