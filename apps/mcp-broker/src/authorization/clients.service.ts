import type { Authorization } from '@ambit/contracts';
import { registerClient, RegistrationRejectedError, type FetchLike } from '@modelcontextprotocol/client';
import { Inject, Injectable } from '@nestjs/common';
import { SecretResolver } from '../secret.resolver.js';
import { Sealer } from '../sealer.js';
import { FlowRepository } from './flow.repository.js';
import { SignInUnsupported, type Found } from './issuer.js';
import { EndpointUnreachable, endpointProblem } from './oauth-fetch.js';
import { ClientIdentity, sealName } from './sealed.js';

export interface Applicant {
  readonly serverId: string;
  readonly projectId: string;
  readonly url: URL;
  readonly authorization: Extract<Authorization, { type: 'interactive' }>;
  readonly redirectUri: string;
  readonly clientMetadataUrl: string | null;
  readonly scope: string | undefined;
}

/** What an authorization server is told of us. */
function clientMetadata(redirectUri: string, scope?: string) {
  return {
    client_name: 'Ambit',
    redirect_uris: [redirectUri],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    application_type: 'web',
    token_endpoint_auth_method: 'none',
    ...(scope === undefined ? {} : { scope }),
  };
}

/** Who we are to an issuer: the client that a person configured, else our published document, else one that we register. */
@Injectable()
export class Clients {
  constructor(
    @Inject(FlowRepository) private readonly flows: FlowRepository,
    @Inject(SecretResolver) private readonly secrets: SecretResolver,
    @Inject(Sealer) private readonly sealer: Sealer,
  ) {}

  /** Throws {@link SignInUnsupported} where the issuer takes only clients that it knows, and none is configured. */
  async identify(
    applicant: Applicant,
    found: Found,
    fetch: FetchLike,
  ): Promise<{ readonly client: ClientIdentity; readonly isRegistered: boolean }> {
    const { authorization, clientMetadataUrl, projectId } = applicant;
    if (authorization.clientId !== undefined) {
      const secret =
        authorization.clientSecret === undefined ? undefined : await this.secrets.named(projectId, authorization.clientSecret.secret);
      return {
        client: { client_id: authorization.clientId, ...(secret === undefined ? {} : { client_secret: secret }) },
        isRegistered: false,
      };
    }
    if (found.metadata.client_id_metadata_document_supported === true && clientMetadataUrl !== null)
      return { client: { client_id: clientMetadataUrl }, isRegistered: false };
    return { client: (await this.registered(applicant, found)) ?? (await this.register(applicant, found, fetch)), isRegistered: true };
  }

  private async registered({ serverId, redirectUri }: Applicant, { issuer }: Found): Promise<ClientIdentity | undefined> {
    const row = await this.flows.client(serverId, issuer, redirectUri);
    if (row === null || !this.sealer.has(row.keyId) || (row.expiresAt !== null && row.expiresAt.getTime() < Date.now())) return undefined;
    return ClientIdentity.parse(JSON.parse(this.sealer.open(row, sealName.client(serverId, issuer))));
  }

  private async register(
    { serverId, redirectUri, scope, url }: Applicant,
    { issuer, metadata }: Found,
    fetch: FetchLike,
  ): Promise<ClientIdentity> {
    const endpoint = metadata.registration_endpoint;
    if (endpoint === undefined)
      throw new SignInUnsupported(`${issuer} takes only clients that it knows; register Ambit there and give authorization.clientId`);
    const problem = endpointProblem(new URL(endpoint), url.origin);
    if (problem !== undefined) throw new SignInUnsupported(`The authorization server is not safe to use: ${problem}`);
    const methods = metadata.token_endpoint_auth_methods_supported;
    const method =
      methods === undefined || methods.includes('none') ? 'none' : (methods.find((one) => one.startsWith('client_secret_')) ?? 'none');
    const full = await registerClient(issuer, {
      metadata,
      clientMetadata: { ...clientMetadata(redirectUri, scope), token_endpoint_auth_method: method },
      fetchFn: fetch,
    }).catch((error: unknown) => {
      if (error instanceof EndpointUnreachable) throw error;
      const status = error instanceof RegistrationRejectedError ? ` (status ${error.status})` : '';
      throw new SignInUnsupported(`${issuer} refused to register Ambit as a client${status}; give authorization.clientId`, {
        cause: error,
      });
    });
    const client = ClientIdentity.parse(full);
    const ends = client.client_secret_expires_at;
    await this.flows.keepClient({
      serverId,
      issuer,
      redirect: redirectUri,
      ...this.sealer.close(JSON.stringify(client), sealName.client(serverId, issuer)),
      expiresAt: ends === undefined || ends === 0 ? null : new Date(ends * 1_000),
    });
    return client;
  }
}
