import { NOT_SENT } from '@ambit/mcp';
import { extractWWWAuthenticateParams, type FetchLike } from '@modelcontextprotocol/client';
import { signInOf } from '../instance.facts.js';
import { specOf, type ServerRow } from '../server.view.js';
import type { Challenges } from './challenges.service.js';
import type { Access, Tokens } from './tokens.service.js';

interface Credentials {
  readonly tokens: Tokens;
  readonly challenges: Challenges;
}

/** How requests to a server are sent: with a subject's token, where the server is one that is signed in to. */
export async function fetchFor(
  { server, subject }: { readonly server: ServerRow; readonly subject: string },
  fetch: FetchLike,
  credentials: Credentials,
): Promise<FetchLike> {
  const { transport } = specOf(server);
  if ((transport.type !== 'http' && transport.type !== 'sse') || signInOf(server) === undefined) return fetch;
  await credentials.tokens.confirm(server, subject);
  return authorizedFetch(fetch, { server, subject, url: new URL(transport.url) }, credentials);
}

/**
 * Puts a subject's token on the requests of one connection, and only on those that go to the server's own origin. A refusal was no
 * effect, so the request is sent once more where another token may help; otherwise what the server wants is written down.
 */
function authorizedFetch(
  fetch: FetchLike,
  whose: { readonly server: ServerRow; readonly subject: string; readonly url: URL },
  { tokens, challenges }: Credentials,
): FetchLike {
  const { server, subject, url: home } = whose;
  // Read once for a connection, also where there is none: whoever signs in has the connection ended, and a refusal has it read again.
  let held: { readonly access: Access | undefined } | undefined;
  const current = async (): Promise<Access | undefined> => {
    const refreshAt = held?.access?.refreshAt ?? null;
    if (held === undefined || (refreshAt !== null && refreshAt.getTime() <= Date.now()))
      held = { access: await unsent(() => tokens.current(server, subject)) };
    return held.access;
  };
  const better = async (answer: Response, sent: Access | undefined): Promise<Access | undefined> => {
    if (answer.status === 401) return tokens.after(server, subject, sent?.token);
    const { error, scope } = extractWWWAuthenticateParams(answer);
    return error === 'insufficient_scope' ? tokens.widen(server, subject, scope) : undefined;
  };
  return async (input, init) => {
    const url = new URL(input);
    if (url.origin !== home.origin) return fetch(input, init);
    const sent = await current();
    const answer = await fetch(url, withToken(init, sent));
    if (answer.status !== 401 && answer.status !== 403) return answer;
    const access = await unsent(() => better(answer, sent));
    held = { access };
    const again = access === undefined || access.token === sent?.token ? undefined : await fetch(url, withToken(init, access));
    if ((again ?? answer).status === 401) await challenges.note(server, again ?? answer);
    return again ?? answer;
  };
}

/** What fails here fails before the server took anything: without this the call would count as one whose end nobody knows. */
async function unsent<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw Object.assign(new Error('The sign-in to this server could not be read; nothing was sent', { cause: error }), { code: NOT_SENT });
  }
}

function withToken(init: RequestInit | undefined, access: Access | undefined): RequestInit {
  const headers = new Headers(init?.headers);
  if (access !== undefined) headers.set('authorization', `Bearer ${access.token}`);
  return { ...init, headers };
}
