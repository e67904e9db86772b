import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { platformFault, Principal, type RoleGrant } from '@ambit/contracts';
import { CONFIG, LOG, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { AccessRepository } from './access.repository.js';
import type { AdminApiConfig } from './config.js';
import { Caller } from './http/caller.js';

/** A revoked token or role holds no longer than this. */
const REMEMBER_MS = 2_000;
const REMEMBERED = 1_000;
const BOOTSTRAP: Principal = { id: 'user:admin', kind: 'person', issuer: 'local', display: 'First administrator' };

export const hashToken = (token: string): string => createHash('sha256').update(token).digest('hex');
export const newToken = (): string => `ambit_${randomBytes(32).toString('base64url')}`;
/** The principal of an id; its kind is what the id says. */
export const principalOf = (id: string): Principal => ({
  id,
  kind: id.startsWith('user:') ? 'person' : id.startsWith('app:') ? 'application' : id.startsWith('worker:') ? 'worker' : 'system',
  issuer: 'local',
  display: '',
});

/** Turns a bearer token into a caller with its roles. */
@Injectable()
export class AuthService implements OnApplicationBootstrap {
  private readonly remembered = new Map<string, { readonly until: number; readonly caller: Caller }>();

  constructor(
    private readonly access: AccessRepository,
    @Inject(CONFIG) private readonly config: AdminApiConfig,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  /** The first administrator's token: as configured, or made and printed when there is none at all. */
  async onApplicationBootstrap(): Promise<void> {
    const configured = this.config.AMBIT_BOOTSTRAP_TOKEN;
    const token = configured ?? newToken();
    const isFirst = await this.bootstrap(token, configured === undefined);
    if (isFirst && configured === undefined) process.stdout.write(`The first administrator's token, shown once: ${token}\n`);
  }

  async authenticate(authorization: string | undefined): Promise<Caller> {
    const token = /^Bearer ([\x21-\x7e]{16,300})$/i.exec(authorization ?? '')?.[1];
    if (token === undefined) throw platformFault('UNAUTHENTICATED', undefined, 'Send "Authorization: Bearer <token>"');
    const hash = hashToken(token);
    const now = performance.now();
    const known = this.remembered.get(hash);
    if (known !== undefined && known.until > now) return known.caller;
    const caller = await this.callerOf(hash);
    if (this.remembered.size >= REMEMBERED) this.remembered.clear();
    this.remembered.set(hash, { until: now + REMEMBER_MS, caller });
    return caller;
  }

  /** After a change of tokens or roles in this process: the next request reads them anew. */
  forget(): void {
    this.remembered.clear();
  }

  private async callerOf(hash: string): Promise<Caller> {
    const token = await this.access.tokenByHash(hash);
    const now = new Date();
    if (token === undefined || token.revokedAt !== null || (token.expiresAt !== null && new Date(token.expiresAt) <= now))
      throw platformFault('UNAUTHENTICATED', undefined, 'The token is unknown, expired or revoked');
    await this.access.touch(token.id, now);
    const grants = await this.access.grantsOf([token.principal, ...token.groups]);
    return new Caller(principalOf(token.principal), token.groups, grants, { kind: 'token', id: token.id });
  }

  private async bootstrap(token: string, onlyIfNone: boolean): Promise<boolean> {
    const now = new Date();
    const audit = (action: string) => ({
      at: now.toISOString(),
      principal: BOOTSTRAP,
      actor: BOOTSTRAP,
      via: { kind: 'system' as const, id: 'bootstrap' },
      projectId: null,
      action,
      target: BOOTSTRAP.id,
      beforeDigest: null,
      afterDigest: null,
      rule: null,
      reason: null,
      traceId: null,
      retention: 'audit' as const,
    });
    const grant: RoleGrant = {
      id: randomUUID(),
      who: BOOTSTRAP.id,
      role: 'admin',
      projectId: null,
      agents: null,
      onBehalfOf: [],
      set: null,
      createdAt: now.toISOString(),
    };
    const isEnrolled = await this.access.enrolFirst({
      token: { id: randomUUID(), hash: hashToken(token), name: 'bootstrap', principal: BOOTSTRAP.id, groups: [], createdAt: now },
      grant,
      onlyIfNone,
      audit,
    });
    if (isEnrolled) this.log.info({ principal: BOOTSTRAP.id }, 'the first administrator may sign in');
    return isEnrolled;
  }
}
