import { Bus } from '@ambit/bus';
import { mcpBroker, sessionService, toolGateway, type Principal, type Via } from '@ambit/contracts';
import type { AuditEntry } from '@ambit/db';
import { Injectable } from '@nestjs/common';
import { AccessRepository } from './access.repository.js';
import { AuthService } from './auth.service.js';

const AT_ONCE = 1_000;

export interface Erasing {
  readonly identity: { readonly principal: Principal; readonly actor: Principal; readonly via?: Via };
  readonly audit: AuditEntry;
  readonly signal?: AbortSignal;
}

/** Erases a principal everywhere; repeating it finishes what was cut short. */
@Injectable()
export class PrincipalService {
  constructor(
    private readonly bus: Bus,
    private readonly access: AccessRepository,
    private readonly auth: AuthService,
  ) {}

  /** Its tokens first, so that nothing new comes in, then what it signed in to servers with; then runs and what was said, then what calls left. */
  async erase(principal: string, { identity, audit, signal }: Erasing) {
    const { tokens, grants } = await this.access.removePrincipal(principal, audit);
    this.auth.forget();
    const sending = { ...identity, ...(signal === undefined ? {} : { signal }) };
    const { credentials } = await this.bus.call(mcpBroker.erasePrincipal, { principal }, sending);
    const { runs, entries, sessionIds } = await this.bus.call(sessionService.erasePrincipal, { principal }, sending);
    let calls = 0;
    let artifacts = 0;
    for (let start = 0; start === 0 || start < sessionIds.length; start += AT_ONCE) {
      const erased = await this.bus.call(
        toolGateway.erasePrincipal,
        { principal, sessionIds: sessionIds.slice(start, start + AT_ONCE) },
        sending,
      );
      calls += erased.calls;
      artifacts += erased.artifacts;
    }
    return { runs, entries, sessions: sessionIds.length, calls, artifacts, tokens, grants, credentials };
  }
}
