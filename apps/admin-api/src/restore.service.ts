import { Bus } from '@ambit/bus';
import { Fault, mcpBroker, pluginRegistry, sessionService, skillStore, type Principal } from '@ambit/contracts';
import type { AuditEntry } from '@ambit/db';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { AccessRepository } from './access.repository.js';
import { takingOf, type Taking } from './domain/taken-away.js';
import { EdgeTokenRepository } from './edge-token.repository.js';
import { NotifyRepository } from './notify.repository.js';
import { PrincipalService } from './principal.service.js';
import { RestoreRepository } from './restore.repository.js';
import { WorkerCredentials } from './worker-credentials.js';
import { WorkerRepository } from './worker.repository.js';

const RETRY_MS = 1_000;
const LIVE = { limit: 1_000 };
const WE: Principal = { id: 'system:restore', kind: 'system', issuer: 'local', display: 'after a restored backup' };
const AS_US = { principal: WE, actor: WE };
/** Faults that pass: whoever has to do it is not there yet. */
const PASSING: ReadonlySet<string> = new Set(['UNAVAILABLE', 'TIMEOUT', 'INTERNAL', 'RATE_LIMITED']);

/**
 * Keeps away what was taken away. NATS servers are told again of revoked workers, because they may have lost them; and what was taken away
 * after a backup that was restored is taken away again. The HTTP surface opens only after that.
 */
@Injectable()
export class RestoreService implements OnModuleInit, OnModuleDestroy {
  #isClosing = false;

  constructor(
    private readonly bus: Bus,
    private readonly restore: RestoreRepository,
    private readonly access: AccessRepository,
    private readonly edgeTokens: EdgeTokenRepository,
    private readonly workers: WorkerRepository,
    private readonly credentials: WorkerCredentials,
    private readonly principals: PrincipalService,
    private readonly notify: NotifyRepository,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.#untilDone(() => this.#again());
    if (this.credentials.isOn)
      await this.#untilDone(async () => this.credentials.revoke(await this.workers.revokedKeys(new Date()), new Date()));
  }

  onModuleDestroy(): void {
    this.#isClosing = true;
  }

  async #again(): Promise<void> {
    for (let some = await this.restore.some(); some.length > 0; some = await this.restore.some()) {
      for (const record of some) {
        const taking = takingOf(record);
        if (taking !== undefined) {
          const { action, target } = record;
          const refused = await this.#take(taking, action);
          if (refused === undefined) this.log.warn({ action, target }, 'taken away again: the backup did not know of it');
          else if (refused.status === 404)
            this.log.info({ action, target, code: refused.code }, 'the backup does not have what was taken away');
          else
            this.log.error(
              { action, target, code: refused.code, message: refused.message },
              'what was taken away is there again, and its owner refuses to take it away; do it by hand',
            );
        }
        await this.restore.done(record);
      }
    }
  }

  async #take(taking: Taking, action: string): Promise<Fault | undefined> {
    const audit = (target: string): AuditEntry => ({
      at: new Date().toISOString(),
      ...AS_US,
      via: null,
      projectId: null,
      action,
      target,
      beforeDigest: null,
      afterDigest: null,
      rule: null,
      reason: 'it was done after the backup that was restored',
      traceId: null,
      retention: 'audit',
    });
    switch (taking.kind) {
      case 'token':
        await this.access.revokeToken(taking.id, audit(taking.id));
        return undefined;
      case 'edge-token':
        await this.edgeTokens.revoke(taking.id, audit(taking.id));
        return undefined;
      case 'grant':
        await this.access.deleteGrant(taking.id, audit(taking.id));
        return undefined;
      case 'notify':
        await this.notify.remove(taking.id, audit(`notify:${taking.id}`));
        return undefined;
      case 'credential': {
        const { agentId, name } = taking;
        for (const credential of await this.workers.list({ agentId, revokedAt: null }, LIVE))
          if (credential.name === name) await this.workers.revoke(credential, audit(`${agentId}/${name}`));
        return undefined;
      }
      case 'agent':
        return this.#unlessRefused(async () => {
          const {
            version,
            createdAt: _created,
            updatedAt: _updated,
            policyVersion: _policy,
            ...agent
          } = await this.bus.call(sessionService.getAgent, { id: taking.id }, AS_US);
          await this.bus.call(sessionService.putAgent, { ...agent, enabled: false, ifVersion: version }, AS_US);
        });
      case 'server':
        return this.#unlessRefused(async () => {
          const { slug, projectId, display, transport, instances, timeouts, readOnly, argumentsKept, owner, set, version, ...rest } =
            await this.bus.call(mcpBroker.getServer, { id: taking.id }, AS_US);
          await this.bus.call(
            mcpBroker.putServer,
            {
              slug,
              projectId,
              display,
              transport,
              instances,
              timeouts,
              readOnly,
              argumentsKept,
              toolPolicy: rest.toolPolicy,
              holdChanges: rest.holdChanges,
              platforms: rest.platforms,
              scopes: rest.scopes,
              permissions: rest.permissions,
              owner,
              set,
              enabled: false,
              ifVersion: version,
            },
            AS_US,
          );
        });
      case 'session':
        return this.#unlessRefused(() => this.bus.call(sessionService.deleteSession, { id: taking.id }, AS_US));
      case 'secret':
        return this.#unlessRefused(() => this.bus.call(mcpBroker.deleteSecret, { projectId: taking.projectId, name: taking.name }, AS_US));
      case 'skill':
        return this.#unlessRefused(() => this.bus.call(skillStore.disableSkill, { agentId: taking.agentId, name: taking.name }, AS_US));
      case 'plugin':
        return this.#unlessRefused(() => this.bus.call(pluginRegistry.disablePlugin, { id: taking.id }, { ...AS_US, timeoutMs: 30_000 }));
      case 'principal':
        return this.#unlessRefused(() => this.principals.erase(taking.id, { identity: AS_US, audit: audit(`principal:${taking.id}`) }));
    }
  }

  /** The refusal, where there is one that does not pass: asking again would change nothing. */
  async #unlessRefused(work: () => Promise<unknown>): Promise<Fault | undefined> {
    try {
      await work();
      return undefined;
    } catch (error) {
      if (!(error instanceof Fault) || PASSING.has(error.code)) throw error;
      return error;
    }
  }

  async #untilDone(work: () => Promise<unknown>): Promise<void> {
    while (!this.#isClosing) {
      try {
        await work();
        return;
      } catch (error) {
        this.log.warn({ error }, 'what was taken away is not all taken away again yet; the HTTP surface stays closed until it is');
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }
}
