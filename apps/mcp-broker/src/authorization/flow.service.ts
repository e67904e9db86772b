import type { Call } from '@ambit/bus';
import { Fault, fault, mcpBroker, type Parsed, type Returns } from '@ambit/contracts';
import {
  exchangeAuthorization,
  IssuerMismatchError,
  OAuthError,
  startAuthorization,
  validateAuthorizationResponseIssuer,
} from '@modelcontextprotocol/client';
import { Inject, Injectable } from '@nestjs/common';
import { createHash, randomBytes } from 'node:crypto';
import { auditOf } from '../audit.js';
import { DiscoveryService } from '../discovery.service.js';
import { authorizationOf, credentialsOf, scopeToAsk, scopeUnion, takesSubject } from '../domain/authorization.js';
import { InstanceService } from '../instance.service.js';
import { Sealer } from '../sealer.js';
import { SecretUnreadable } from '../secret.resolver.js';
import { ServerRepository } from '../server.repository.js';
import { specOf, type ServerRow } from '../server.view.js';
import { Challenges } from './challenges.service.js';
import { Clients } from './clients.service.js';
import { CredentialRepository } from './credential.repository.js';
import { FlowRepository, type FlowRow } from './flow.repository.js';
import { Grants } from './grants.service.js';
import { SignInUnsupported, type Found } from './issuer.js';
import { EndpointUnreachable } from './oauth-fetch.js';
import { SealedFlow, sealName, tokenMetadata } from './sealed.js';

type Start = Parsed<typeof mcpBroker.startAuthorization>;
type Finish = Parsed<typeof mcpBroker.finishAuthorization>;
type Done = Returns<typeof mcpBroker.finishAuthorization>;

const FLOW_MS = 10 * 60_000;
const hashOf = (state: string): string => createHash('sha256').update(state).digest('hex');

/** A person's sign-in to a server: begun here, carried out between the person's browser and the issuer, finished here, once. */
@Injectable()
export class FlowService {
  constructor(
    @Inject(ServerRepository) private readonly servers: ServerRepository,
    @Inject(CredentialRepository) private readonly credentials: CredentialRepository,
    @Inject(FlowRepository) private readonly flows: FlowRepository,
    @Inject(Challenges) private readonly challenges: Challenges,
    @Inject(Clients) private readonly clients: Clients,
    @Inject(Grants) private readonly grants: Grants,
    @Inject(Sealer) private readonly sealer: Sealer,
    @Inject(InstanceService) private readonly instances: InstanceService,
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
  ) {}

  async start(input: Start, call: Call): Promise<Returns<typeof mcpBroker.startAuthorization>> {
    const server = await this.servers.find({ id: input.serverId });
    if (server === null) throw fault(mcpBroker.startAuthorization, 'SERVER_UNKNOWN');
    try {
      return await this.begin(server, input, call);
    } catch (error) {
      if (error instanceof SignInUnsupported || error instanceof EndpointUnreachable || error instanceof SecretUnreadable)
        throw fault(mcpBroker.startAuthorization, 'AUTHORIZATION_UNSUPPORTED', { reason: error.message });
      throw error;
    }
  }

  /** What a sign-in is for, so that whoever finishes it can be asked whether that is what they want. */
  async describe({ state }: Parsed<typeof mcpBroker.describeAuthorization>): Promise<Returns<typeof mcpBroker.describeAuthorization>> {
    const flow = await this.flows.waiting(hashOf(state), new Date());
    const server = flow === null ? null : await this.servers.find({ id: flow.serverId });
    if (flow === null || server === null) throw fault(mcpBroker.describeAuthorization, 'FLOW_UNKNOWN');
    return { serverId: server.id, slug: server.slug, subject: flow.subject, issuer: this.open(flow).issuer };
  }

  async finish(answer: Finish, call: Call): Promise<Done> {
    const flow = await this.flows.take(hashOf(answer.state), new Date());
    const server = flow === undefined ? null : await this.servers.find({ id: flow.serverId });
    if (flow === undefined || server === null) throw fault(mcpBroker.finishAuthorization, 'FLOW_UNKNOWN');
    const begun = this.open(flow);
    const audit = auditOf(call, { action: 'authorization.finish', target: targetOf(flow), projectId: server.projectId });
    try {
      await this.redeem(flow, begun, { answer, server, audit });
    } catch (error) {
      if (error instanceof Fault) throw error;
      const reason = reasonOf(error);
      if (reason === undefined) throw error;
      await this.flows.fail(
        flow,
        { reason, issuer: begun.issuer, resource: begun.resource },
        { ...audit, action: 'authorization.fail', reason },
      );
      throw fault(mcpBroker.finishAuthorization, 'AUTHORIZATION_FAILED', { reason });
    }
    // What runs was opened without these credentials, or with older ones.
    await this.instances.endOf(server, flow.subject, 'Somebody signed in to the server');
    if (server.enabled && flow.subject === 'shared') this.discovery.discover(server.id);
    // What the server shows to this subject is read now, for its next run; a failure is told by whatever is called then.
    else if (server.enabled) void this.instances.list(server, flow.subject).catch(() => undefined);
    return { serverId: server.id, slug: server.slug, subject: flow.subject, interactionId: flow.interaction };
  }

  private async begin(server: ServerRow, input: Start, call: Call): Promise<Returns<typeof mcpBroker.startAuthorization>> {
    const { subject, redirectUri, clientMetadataUrl } = input;
    const authorization = authorizationOf(specOf(server).transport);
    if (authorization.type === 'client_credentials' || authorization.type === 'private_key_jwt')
      throw new SignInUnsupported('Ambit signs in to this server with its own credentials; nobody has to');
    const fetch = this.challenges.fetchFor(server);
    const found = await this.challenges.find(server, fetch);
    if (authorization.type !== 'interactive') throw new SignInUnsupported('There is no sign-in to this server');
    if (!takesSubject(authorization, subject))
      throw fault(mcpBroker.startAuthorization, 'SUBJECT_REFUSED', { credentials: credentialsOf(authorization) });
    if (this.sealer.keyId === undefined)
      throw new SignInUnsupported('No sealing key is configured here (AMBIT_SEALING_KEY), so tokens cannot be stored');
    if (found.metadata.code_challenge_methods_supported?.includes('S256') !== true)
      throw new SignInUnsupported(`${found.issuer} does not say that it takes PKCE with S256, without which codes can be stolen`);
    const scope = await this.scopeOf(server, subject, found);
    const applicant = {
      serverId: server.id,
      projectId: server.projectId,
      url: new URL(found.resource),
      authorization,
      redirectUri,
      clientMetadataUrl,
      scope,
    };
    const { client, isRegistered } = await this.clients.identify(applicant, found, fetch);
    const state = randomBytes(32).toString('base64url');
    const { authorizationUrl, codeVerifier } = await startAuthorization(found.issuer, {
      metadata: found.metadata,
      clientInformation: client,
      redirectUrl: redirectUri,
      state,
      resource: found.resource,
      ...(scope === undefined ? {} : { scope }),
    });
    const stateHash = hashOf(state);
    const expiresAt = new Date(Date.now() + FLOW_MS);
    const begun: SealedFlow = {
      codeVerifier,
      redirectUri,
      client,
      isRegistered,
      ...partsOf(found),
      ...(scope === undefined ? {} : { scope }),
    };
    const row: FlowRow = {
      serverId: server.id,
      subject,
      stateHash,
      generation: server.configGeneration,
      bindingHash: server.bindingHash,
      ...this.sealer.close(JSON.stringify(begun), sealName.flow(stateHash)),
      interaction: input.interactionId ?? null,
      usedAt: null,
      expiresAt,
    };
    await this.flows.begin(row, auditOf(call, { action: 'authorization.start', target: targetOf(row), projectId: server.projectId }));
    return { url: authorizationUrl.href, issuer: found.issuer, expiresAt: expiresAt.toISOString() };
  }

  private async redeem(
    flow: FlowRow,
    begun: SealedFlow,
    at: { readonly answer: Finish; readonly server: ServerRow; readonly audit: ReturnType<typeof auditOf> },
  ): Promise<void> {
    const { answer, server } = at;
    // Before anything else of the answer is believed: an answer of another issuer is a mix-up, whatever it says.
    validateAuthorizationResponseIssuer({ iss: answer.iss, expectedIssuer: begun.issuer, issParameterSupported: begun.tellsIssuer });
    if (answer.error !== undefined) throw new SignInRefused(answer.error);
    if (answer.code === undefined) throw new SignInRefused('no_code');
    if (server.configGeneration !== flow.generation || server.bindingHash !== flow.bindingHash) throw new SignInRefused('server_changed');
    const tokens = await exchangeAuthorization(begun.issuer, {
      metadata: tokenMetadata(begun),
      clientInformation: begun.client,
      authorizationCode: answer.code,
      codeVerifier: begun.codeVerifier,
      redirectUri: begun.redirectUri,
      resource: begun.resource,
      fetchFn: this.challenges.fetchFor(server),
    }).catch(async (error: unknown) => {
      if (error instanceof OAuthError && error.code === 'invalid_client' && begun.isRegistered)
        await this.flows.forgetClient(server.id, begun.issuer);
      throw error;
    });
    const token = this.grants.stored(flow, tokens, {
      issuer: begun.issuer,
      resource: begun.resource,
      client: begun.client,
      scope: begun.scope,
    });
    if (!(await this.flows.complete(flow, token, at.audit))) throw fault(mcpBroker.finishAuthorization, 'FLOW_UNKNOWN');
  }

  private async scopeOf(server: ServerRow, subject: string, found: Found): Promise<string | undefined> {
    const authorization = authorizationOf(specOf(server).transport);
    const [challenge, row] = await Promise.all([this.challenges.of(server), this.credentials.find({ serverId: server.id, subject })]);
    return scopeToAsk({
      configured: authorization.type === 'interactive' ? authorization.scopes : [],
      challenged: challenge?.scope,
      // So that a step up does not lose what was granted before.
      granted: scopeUnion(row?.wantedScope === null ? null : row?.scope, row?.wantedScope),
      offered: found.scopes,
      issuerOffers: found.metadata.scopes_supported,
    });
  }

  private open(flow: FlowRow): SealedFlow {
    return SealedFlow.parse(JSON.parse(this.sealer.open(flow, sealName.flow(flow.stateHash))));
  }
}

/** The issuer, or the person, said no. */
class SignInRefused extends Error {}

function partsOf({ issuer, metadata, resource }: Found) {
  const methods = metadata.token_endpoint_auth_methods_supported;
  return {
    issuer,
    tellsIssuer: metadata['authorization_response_iss_parameter_supported'] === true,
    tokenEndpoint: metadata.token_endpoint,
    ...(methods === undefined ? {} : { authMethods: methods }),
    resource,
  };
}

const targetOf = ({ serverId, subject }: Pick<FlowRow, 'serverId' | 'subject'>): string => `server:${serverId}/${subject}`;

/** What went wrong, in our words: an issuer's own are not shown, and of a wrong one nothing at all. */
function reasonOf(error: unknown): string | undefined {
  if (error instanceof IssuerMismatchError) return 'The answer came from another issuer than the one that was asked';
  if (error instanceof EndpointUnreachable) return error.message;
  if (error instanceof SignInRefused && error.message === 'server_changed')
    return 'The configuration of the server changed during the sign-in';
  const code = error instanceof OAuthError ? error.code : error instanceof SignInRefused ? error.message : undefined;
  if (code === undefined)
    return error instanceof Error && error.name === 'ZodError' ? 'The issuer answered with something that is no token' : undefined;
  return `The issuer did not grant it${/^[a-z_]{1,64}$/.test(code) ? ` (${code})` : ''}`;
}
