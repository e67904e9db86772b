import { OAuthError } from '@modelcontextprotocol/client';
import { LOG, type Logger } from '@ambit/service';
import { sentenceOf } from '@ambit/mcp';
import { Inject, Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { authorizationOf, isBoundTo, mayHelp, scopeToAsk, scopeUnion } from '../domain/authorization.js';
import { specOf, type ServerRow } from '../server.view.js';
import { Challenges } from './challenges.service.js';
import { CredentialRepository, type CredentialRow, type Key, type Lease, type StoredToken } from './credential.repository.js';
import { Grants } from './grants.service.js';
import { EndpointUnreachable } from './oauth-fetch.js';
import { SignInUnsupported } from './issuer.js';
import { FlowRepository } from './flow.repository.js';

/** What a request carries, and until when it may without asking again. */
export interface Access {
  readonly token: string;
  readonly refreshAt: Date | null;
}

/** All that renewing may take; the lease outlives it. */
const RENEW_MS = 20_000;
const LEASE_MS = 30_000;
const POLL_MS = 100;
/** A token that ends sooner is waited with, not sent. */
const MARGIN_MS = 5_000;

/** Access tokens of servers: read, renewed before they end, by one replica at a time, and given up when they are refused. */
@Injectable()
export class Tokens {
  private readonly holder = randomUUID();
  /** Several requests find an old token at once; one of them has it renewed. */
  private readonly renewing = new Map<string, Promise<CredentialRow | null>>();

  constructor(
    @Inject(CredentialRepository) private readonly credentials: CredentialRepository,
    @Inject(FlowRepository) private readonly flows: FlowRepository,
    @Inject(Grants) private readonly grants: Grants,
    @Inject(Challenges) private readonly challenges: Challenges,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  /** The token to send now; undefined where there is none that may be sent. */
  async current(server: ServerRow, subject: string): Promise<Access | undefined> {
    const row = await this.usable(server, subject);
    if (row === null) return isMachine(server) ? this.access(await this.renew(server, subject, null)) : undefined;
    if (row.refreshAt === null || row.refreshAt.getTime() > Date.now()) return this.access(row);
    return this.access(await this.renew(server, subject, row));
  }

  /** After a server refused `refused`: another one that may help, or undefined. */
  async after(server: ServerRow, subject: string, refused: string | undefined): Promise<Access | undefined> {
    const row = await this.usable(server, subject);
    const held = row === null ? undefined : this.grants.open(row);
    if (row === null || held === undefined) return isMachine(server) && refused === undefined ? this.current(server, subject) : undefined;
    // Another request, or another replica, has a newer one by now.
    if (refused !== held.accessToken) return this.access(row);
    if (!mayHelp(row.obtainedAt, new Date()) || (held.refreshToken === undefined && !isMachine(server))) {
      await this.credentials.spend(row, 'The server refuses the token; somebody has to sign in again', new Date());
      return undefined;
    }
    return this.access(await this.renew(server, subject, row));
  }

  /** The server wants more than the token has. A machine asks for it; a person has to sign in once more. */
  async widen(server: ServerRow, subject: string, scope: string | undefined): Promise<Access | undefined> {
    const row = await this.usable(server, subject);
    if (row === null) return undefined;
    const wanted = scopeUnion(row.scope, row.wantedScope, scope);
    const isMore = wanted !== undefined && wanted !== scopeUnion(row.scope);
    if (isMachine(server) && isMore) return this.access(await this.renew(server, subject, { ...row, wantedScope: wanted }));
    const reason = `The server wants more rights than the sign-in gave${scope === undefined ? '' : `: ${scope}`}`.slice(0, 500);
    await this.credentials.want({ serverId: server.id, subject }, { scope: wanted ?? '', reason }, new Date());
    return undefined;
  }

  /** Before a connection is opened: a token of an issuer that the server names no more is not sent to it. */
  async confirm(server: ServerRow, subject: string): Promise<void> {
    const row = await this.credentials.find({ serverId: server.id, subject });
    if (row === null || row.sealed === null || !isBoundTo(row, server)) return;
    try {
      const found = await this.challenges.find(server);
      if (found.issuer !== row.issuer || found.resource !== row.resource) await this.credentials.spend(row, ANOTHER, new Date());
    } catch (error) {
      // An issuer that is away takes nothing from a token that it gave.
      if (error instanceof SignInUnsupported) await this.credentials.spend(row, error.message, new Date());
      else if (!(error instanceof EndpointUnreachable)) throw error;
    }
  }

  private access(row: CredentialRow | null): Access | undefined {
    const held = row === null ? undefined : this.grants.open(row);
    return row === null || held === undefined ? undefined : { token: held.accessToken, refreshAt: row.refreshAt };
  }

  private async usable(server: ServerRow, subject: string): Promise<CredentialRow | null> {
    const row = await this.credentials.find({ serverId: server.id, subject });
    return row !== null && row.sealed !== null && isBoundTo(row, server) ? row : null;
  }

  private renew(server: ServerRow, subject: string, old: CredentialRow | null): Promise<CredentialRow | null> {
    const key = `${server.id} ${server.configGeneration} ${subject}`;
    const known = this.renewing.get(key);
    if (known !== undefined) return known;
    const renewing = this.renewOnce(server, subject, old).finally(() => this.renewing.delete(key));
    this.renewing.set(key, renewing);
    return renewing;
  }

  private async renewOnce(server: ServerRow, subject: string, old: CredentialRow | null): Promise<CredentialRow | null> {
    const key: Key = { serverId: server.id, subject };
    const row = old ?? (await this.place(server, key));
    if (row === null) return null;
    const lease: Lease = { ...key, version: row.version, holder: this.holder };
    for (const until = performance.now() + LEASE_MS; performance.now() < until; await wait(POLL_MS)) {
      if (await this.credentials.lease(lease, new Date(), LEASE_MS)) return this.obtain(server, row, lease);
      const now = await this.credentials.find(key);
      if (now === null || now.version !== row.version) return now !== null && now.sealed !== null && isBoundTo(now, server) ? now : null;
      // Another replica is at it; what is still good is used meanwhile.
      if (row.sealed !== null && row.expiresAt !== null && row.expiresAt.getTime() - MARGIN_MS > Date.now()) return row;
    }
    return null;
  }

  private async obtain(server: ServerRow, row: CredentialRow, lease: Lease): Promise<CredentialRow | null> {
    const isGood = row.sealed !== null && (row.expiresAt === null || row.expiresAt.getTime() > Date.now());
    try {
      const token = await this.ask(server, row);
      const isStored = await this.credentials.renewed(
        lease,
        { ...token, generation: server.configGeneration, bindingHash: server.bindingHash },
        new Date(),
      );
      return isStored ? await this.usable(server, row.subject) : null;
    } catch (error) {
      if (error instanceof OAuthError || error instanceof SignInUnsupported) {
        if (error instanceof OAuthError && error.code === 'invalid_client') await this.flows.forgetClient(server.id, row.issuer);
        await this.credentials.spend(row, refusedBy(error), new Date());
        return null;
      }
      const reason = `A new token could not be had: ${sentenceOf(error, 300)}`;
      this.log.warn({ serverId: server.id, reason }, 'credentials of an MCP server could not be renewed');
      await this.credentials.giveBack(lease, isGood ? undefined : { state: 'error', reason }, new Date());
      return isGood ? row : null;
    }
  }

  private async ask(server: ServerRow, row: CredentialRow): Promise<StoredToken> {
    const { transport } = specOf(server);
    const authorization = authorizationOf(transport);
    const fetch = this.challenges.fetchFor(server, AbortSignal.timeout(RENEW_MS));
    const found = await this.challenges.find(server, fetch);
    if (authorization.type === 'client_credentials' || authorization.type === 'private_key_jwt') {
      const challenge = await this.challenges.of(server);
      const scope = scopeToAsk({
        configured: authorization.scopes,
        challenged: scopeUnion(challenge?.scope, row.wantedScope),
        granted: null,
        offered: found.scopes,
        issuerOffers: undefined,
      });
      return this.grants.ofMachine(row, authorization, { found, fetch, projectId: server.projectId, scope });
    }
    if (found.issuer !== row.issuer || found.resource !== row.resource) throw new SignInUnsupported(ANOTHER);
    const held = this.grants.open(row);
    if (held?.refreshToken === undefined)
      throw new SignInUnsupported('The token has ended, and its issuer gave none to renew it with; sign in again');
    return this.grants.refresh(row, { ...held, refreshToken: held.refreshToken }, { found, fetch });
  }

  /** A machine's first token has no place yet. */
  private async place(server: ServerRow, key: Key): Promise<CredentialRow | null> {
    const { configGeneration: generation, bindingHash } = server;
    const empty = { resource: '', issuer: '', state: 'required', reason: null, scope: null, wantedScope: null, version: 0 };
    await this.credentials.prepare({ ...key, ...empty, generation, bindingHash, updatedAt: new Date() });
    return this.credentials.find(key);
  }
}

const ANOTHER = 'The server names another issuer, or itself otherwise, than when somebody signed in; sign in again';

function isMachine(server: ServerRow): boolean {
  const { type } = authorizationOf(specOf(server).transport);
  return type === 'client_credentials' || type === 'private_key_jwt';
}

/** An issuer's own words are not passed on: only its code, where it is one. */
function refusedBy(error: Error): string {
  if (!(error instanceof OAuthError)) return error.message;
  const code = /^[a-z_]{1,64}$/.test(error.code) ? ` (${error.code})` : '';
  return `The issuer gives no new token${code}; somebody has to sign in again`;
}
