import type { Authorization } from '@ambit/contracts';
import {
  ClientCredentialsProvider,
  fetchToken,
  PrivateKeyJwtProvider,
  refreshAuthorization,
  type FetchLike,
  type OAuthTokens,
} from '@modelcontextprotocol/client';
import { Inject, Injectable } from '@nestjs/common';
import { lifeOf } from '../domain/authorization.js';
import { SecretResolver } from '../secret.resolver.js';
import { Sealer } from '../sealer.js';
import type { CredentialRow, Key, StoredToken } from './credential.repository.js';
import type { Found } from './issuer.js';
import { sealName, SealedToken, type ClientIdentity } from './sealed.js';

type Machine = Extract<Authorization, { type: 'client_credentials' | 'private_key_jwt' }>;

/** Asks issuers for tokens, and seals what they give. */
@Injectable()
export class Grants {
  constructor(
    @Inject(SecretResolver) private readonly secrets: SecretResolver,
    @Inject(Sealer) private readonly sealer: Sealer,
  ) {}

  open(row: CredentialRow): SealedToken | undefined {
    if (row.sealed === null || !this.sealer.has(row.keyId)) return undefined;
    return SealedToken.parse(
      JSON.parse(this.sealer.open({ sealed: row.sealed, keyId: row.keyId }, sealName.token(row.serverId, row.subject))),
    );
  }

  /** A token as it is stored. */
  stored(
    key: Key,
    tokens: OAuthTokens,
    at: { readonly issuer: string; readonly resource: string; readonly client: ClientIdentity; readonly scope: string | undefined },
  ): StoredToken {
    const obtainedAt = new Date();
    const sealed: SealedToken = {
      accessToken: tokens.access_token,
      ...(tokens.refresh_token === undefined ? {} : { refreshToken: tokens.refresh_token }),
      client: at.client,
    };
    return {
      resource: at.resource,
      issuer: at.issuer,
      // Where it says nothing it gave what was asked for.
      scope: tokens.scope ?? at.scope ?? null,
      ...this.sealer.close(JSON.stringify(sealed), sealName.token(key.serverId, key.subject)),
      obtainedAt,
      ...lifeOf(obtainedAt, tokens.expires_in),
    };
  }

  /** With a refresh token; asks for what was granted before. */
  async refresh(
    row: CredentialRow,
    held: SealedToken & { readonly refreshToken: string },
    at: { readonly found: Found; readonly fetch: FetchLike },
  ): Promise<StoredToken> {
    const { issuer, metadata, resource } = at.found;
    const tokens = await refreshAuthorization(issuer, {
      metadata,
      clientInformation: held.client,
      refreshToken: held.refreshToken,
      resource,
      fetchFn: at.fetch,
    });
    return this.stored(row, tokens, { issuer, resource, client: held.client, scope: row.scope ?? undefined });
  }

  /** With a machine's own credentials. */
  async ofMachine(
    key: Key,
    authorization: Machine,
    at: { readonly found: Found; readonly fetch: FetchLike; readonly projectId: string; readonly scope: string | undefined },
  ): Promise<StoredToken> {
    const { issuer, metadata, resource } = at.found;
    const { clientId } = authorization;
    const named = { clientId, expectedIssuer: issuer };
    const provider =
      authorization.type === 'client_credentials'
        ? new ClientCredentialsProvider({
            ...named,
            clientSecret: await this.secrets.named(at.projectId, authorization.clientSecret.secret),
          })
        : new PrivateKeyJwtProvider({
            ...named,
            privateKey: await this.secrets.named(at.projectId, authorization.privateKey.secret),
            algorithm: authorization.algorithm,
          });
    const tokens = await fetchToken(provider, issuer, {
      metadata,
      resource,
      fetchFn: at.fetch,
      ...(at.scope === undefined ? {} : { scope: at.scope }),
    });
    const client = { client_id: clientId };
    // A refresh token of such a client is a second secret for nothing: it can ask again whenever it wants.
    const { refresh_token: _unused, ...kept } = tokens;
    return this.stored(key, kept, { issuer, resource, client, scope: at.scope });
  }
}
