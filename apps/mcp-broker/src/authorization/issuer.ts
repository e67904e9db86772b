import {
  checkResourceAllowed,
  discoverAuthorizationServerMetadata,
  discoverOAuthProtectedResourceMetadata,
  IssuerMismatchError,
  resourceUrlFromServerUrl,
  type AuthorizationServerMetadata,
  type FetchLike,
} from '@modelcontextprotocol/client';
import { EndpointUnreachable, endpointProblem } from './oauth-fetch.js';

/** Where tokens for a server come from. */
export interface Found {
  readonly issuer: string;
  readonly metadata: AuthorizationServerMetadata;
  /** What a token is asked for, word for word as the server names itself. */
  readonly resource: string;
  readonly scopes: readonly string[] | undefined;
}

/** Nobody can sign in, for a reason that only a person changes. The message is one sentence. */
export class SignInUnsupported extends Error {
  override readonly name = 'SignInUnsupported';
}

export interface Asked {
  readonly url: URL;
  /** What the server's challenge named; null where it named nothing. */
  readonly resourceMetadataUrl: string | null;
  /** The one issuer that the configuration allows. */
  readonly issuer: string | undefined;
}

/**
 * Finds the authorization server of an MCP server: its protected-resource metadata, then that issuer's own document. Throws
 * {@link SignInUnsupported} where there is none, {@link EndpointUnreachable} where it cannot be told just now.
 */
export async function findIssuer(asked: Asked, fetch: FetchLike): Promise<Found> {
  const resource = await resourceOf(asked, fetch);
  const wanted = issuerOf(asked, resource?.authorization_servers);
  const unsafe = endpointProblem(new URL(wanted), asked.url.origin);
  if (unsafe !== undefined) throw new EndpointUnreachable(unsafe);
  const metadata = await metadataOf(wanted, fetch);
  if (asked.issuer !== undefined && metadata.issuer !== asked.issuer)
    throw new SignInUnsupported(`${wanted} calls itself another issuer than the configured one`);
  for (const endpoint of [metadata.authorization_endpoint, metadata.token_endpoint]) {
    const problem = endpointProblem(new URL(endpoint), asked.url.origin);
    if (problem !== undefined) throw new SignInUnsupported(`The authorization server is not safe to use: ${problem}`);
  }
  return {
    issuer: metadata.issuer,
    metadata,
    resource: resource?.resource ?? resourceUrlFromServerUrl(asked.url).href,
    scopes: resource?.scopes_supported,
  };
}

type ResourceMetadata = Awaited<ReturnType<typeof discoverOAuthProtectedResourceMetadata>>;

async function resourceOf({ url, resourceMetadataUrl }: Asked, fetch: FetchLike): Promise<ResourceMetadata | undefined> {
  let found: ResourceMetadata;
  try {
    found = await discoverOAuthProtectedResourceMetadata(url, resourceMetadataUrl === null ? {} : { resourceMetadataUrl }, fetch);
  } catch (error) {
    if (error instanceof EndpointUnreachable) throw error;
    return undefined;
  }
  if (checkResourceAllowed({ requestedResource: resourceUrlFromServerUrl(url), configuredResource: found.resource })) return found;
  throw new SignInUnsupported('The metadata of the server is about another resource than the server');
}

/** Servers of older revisions publish no resource metadata: their own origin is the issuer then. */
function issuerOf({ url, issuer }: Asked, listed: readonly string[] | undefined): string {
  if (issuer === undefined) return listed?.[0] ?? new URL('/', url).href;
  if (listed === undefined || listed.includes(issuer)) return issuer;
  throw new SignInUnsupported(`The server does not name the configured issuer ${issuer}`);
}

async function metadataOf(issuer: string, fetch: FetchLike): Promise<AuthorizationServerMetadata> {
  try {
    const metadata = await discoverAuthorizationServerMetadata(issuer, { fetchFn: fetch });
    if (metadata !== undefined) return metadata;
  } catch (error) {
    if (error instanceof EndpointUnreachable) throw error;
    if (error instanceof IssuerMismatchError)
      throw new SignInUnsupported(`The document of ${issuer} is of another issuer`, { cause: error });
    throw new SignInUnsupported(`The document of ${issuer} cannot be used`, { cause: error });
  }
  throw new SignInUnsupported('The server wants credentials and does not say where to sign in; configure an Authorization header');
}
