import { extractWWWAuthenticateParams, type FetchLike } from '@modelcontextprotocol/client';
import { Egress } from '@ambit/egress';
import { CONFIG } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import type { BrokerConfig } from '../config.js';
import { authorizationOf } from '../domain/authorization.js';
import { specOf, type ServerRow } from '../server.view.js';
import { CredentialRepository, type ChallengeRow } from './credential.repository.js';
import { findIssuer, SignInUnsupported, type Found } from './issuer.js';
import { EndpointUnreachable, oauthFetches } from './oauth-fetch.js';

/** How long what a server said of its sign-in is believed before it is looked up again. */
const KNOWN_MS = 60_000;

/** What servers answer where credentials are missing, and where those come from. */
@Injectable()
export class Challenges {
  private readonly fetches: ReturnType<typeof oauthFetches>;
  /** One look-up for each server, however many requests are refused at once. */
  private readonly noting = new Map<string, Promise<void>>();

  constructor(
    @Inject(CredentialRepository) private readonly credentials: CredentialRepository,
    @Inject(CONFIG) config: BrokerConfig,
  ) {
    const egress = new Egress(config.AMBIT_EGRESS_ALLOW);
    this.fetches = oauthFetches((address) => egress.allows(address));
  }

  fetchFor(server: ServerRow, signal?: AbortSignal): FetchLike {
    return this.fetches(urlOf(server), signal);
  }

  /** What the server asked for last, as it is configured now. */
  async of(server: ServerRow): Promise<ChallengeRow | undefined> {
    const row = await this.credentials.challenge(server.id);
    return row !== null && row.generation === server.configGeneration ? row : undefined;
  }

  /** Where tokens for a server come from, asked anew. Throws what {@link findIssuer} throws. */
  async find(server: ServerRow, fetch?: FetchLike, resourceMetadataUrl?: string | null): Promise<Found> {
    const authorization = authorizationOf(specOf(server).transport);
    if (authorization.type === 'unsupported') throw new SignInUnsupported('Only servers behind a URL are signed in to');
    if (authorization.type === 'none')
      throw new SignInUnsupported('This server is configured to be used without a sign-in, or has an Authorization header');
    const known = resourceMetadataUrl === undefined ? ((await this.of(server))?.resourceMetadataUrl ?? null) : resourceMetadataUrl;
    return findIssuer({ url: urlOf(server), resourceMetadataUrl: known, issuer: authorization.issuer }, fetch ?? this.fetchFor(server));
  }

  /** Remembers that a server wants credentials, with what its answer says of them. */
  note(server: ServerRow, answer: Response): Promise<void> {
    const key = `${server.id} ${server.configGeneration}`;
    const known = this.noting.get(key);
    if (known !== undefined) return known;
    const noting = this.remember(server, answer).finally(() => this.noting.delete(key));
    this.noting.set(key, noting);
    return noting;
  }

  private async remember(server: ServerRow, answer: Response): Promise<void> {
    const { resourceMetadataUrl: named, scope } = extractWWWAuthenticateParams(answer);
    const resourceMetadataUrl = named?.href.slice(0, 2_048) ?? null;
    const before = await this.of(server);
    const asked = scope?.slice(0, 4_096) ?? null;
    const isKnown = before !== undefined && before.resourceMetadataUrl === resourceMetadataUrl && before.scope === asked;
    if (isKnown && before.state !== 'error' && Date.now() - before.at.getTime() < KNOWN_MS) return;
    const found = await this.outcome(server, resourceMetadataUrl);
    await this.credentials.putChallenge({
      serverId: server.id,
      generation: server.configGeneration,
      ...found,
      resourceMetadataUrl,
      scope: asked,
      at: new Date(),
    });
  }

  private async outcome(server: ServerRow, resourceMetadataUrl: string | null): Promise<Pick<ChallengeRow, 'state' | 'reason' | 'issuer'>> {
    try {
      const { issuer } = await this.find(server, undefined, resourceMetadataUrl);
      return { state: 'required', reason: null, issuer };
    } catch (error) {
      if (error instanceof SignInUnsupported) return { state: 'unsupported', reason: error.message, issuer: null };
      if (error instanceof EndpointUnreachable) return { state: 'error', reason: error.message, issuer: null };
      throw error;
    }
  }
}

function urlOf(server: ServerRow): URL {
  const { transport } = specOf(server);
  if (transport.type !== 'http' && transport.type !== 'sse') throw new SignInUnsupported('Only servers behind a URL are signed in to');
  return new URL(transport.url);
}
