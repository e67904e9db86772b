import { digestOfBytes } from '@ambit/bundle';
import type { Call } from '@ambit/bus';
import { fault, pluginRegistry, type Parsed, type Publisher, type Returns } from '@ambit/contracts';
import type { AuditEntry } from '@ambit/db';
import { Injectable } from '@nestjs/common';
import { LifecycleService } from './lifecycle.service.js';
import { Operations } from './operations.js';
import { PluginRepository } from './plugin.repository.js';
import { PublisherRepository } from './publisher.repository.js';

const KEY_BYTES = 32;
const PLUGINS = 1_000;

/** Whose signatures count, as an administrator says. */
@Injectable()
export class PublisherService {
  constructor(
    private readonly publishers: PublisherRepository,
    private readonly plugins: PluginRepository,
    private readonly operations: Operations,
    private readonly lifecycle: LifecycleService,
  ) {}

  async trust({ publisher, publicKey }: Parsed<typeof pluginRegistry.trustPublisher>, call: Call): Promise<Publisher> {
    const raw = Buffer.from(publicKey, 'base64');
    if (raw.byteLength !== KEY_BYTES || raw.every((byte) => byte === 0))
      throw refused('a raw ed25519 public key has 32 bytes, not all of them zero');
    const keyId = digestOfBytes(raw);
    const stands = await this.publishers.add(
      { keyId, publisher, publicKey: raw.toString('base64') },
      auditOf(call, { action: 'publisher.trusted', target: keyId, reason: publisher }),
    );
    if (stands.publisher !== publisher) throw refused(`it is a key of ${stands.publisher}`);
    return stands;
  }

  async list({ cursor, limit }: Parsed<typeof pluginRegistry.listPublishers>): Promise<Returns<typeof pluginRegistry.listPublishers>> {
    const rows = await this.publishers.list({ limit: limit + 1, ...(cursor === undefined ? {} : { after: cursor }) });
    const last = rows.length > limit ? rows[limit - 1] : undefined;
    return { items: rows.slice(0, limit), ...(last === undefined ? {} : { cursor: last.keyId }) };
  }

  /** Answers when nothing that the key signed can be used any more. */
  async distrust({ keyId }: Parsed<typeof pluginRegistry.distrustPublisher>, call: Call): Promise<{ removed: boolean }> {
    const removed = await this.publishers.remove(keyId, auditOf(call, { action: 'publisher.distrusted', target: keyId, reason: null }));
    for (const { id } of await this.plugins.list({ signingKey: keyId }, { limit: PLUGINS }))
      await this.operations.exclusively(id, async (held) => {
        const found = await this.plugins.package(held.installation.digest);
        if (found !== undefined) await this.lifecycle.reconcile(held, found);
      });
    return { removed };
  }
}

function refused(reason: string) {
  return fault(pluginRegistry.trustPublisher, 'KEY_REFUSED', { reason });
}

function auditOf(call: Call, what: Pick<AuditEntry, 'action' | 'target' | 'reason'>): AuditEntry {
  const { principal, actor, via, traceId, startedAt } = call;
  const who = { actor: actor ?? null, principal: principal ?? null, via: via ?? null, projectId: null, traceId };
  return { ...what, ...who, at: startedAt.toISOString(), beforeDigest: null, afterDigest: null, rule: null, retention: 'audit' };
}
