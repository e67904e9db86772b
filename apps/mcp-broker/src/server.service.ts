import type { Call } from '@ambit/bus';
import { digestOf } from '@ambit/capability';
import { fault, mcpBroker, ServerSpec, type JsonObject, type Parsed, type Returns, type Server } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { auditOf } from './audit.js';
import { AuthorizationService } from './authorization/authorization.service.js';
import { DiscoveryService } from './discovery.service.js';
import { decidePut } from './domain/put-server.js';
import { Epochs } from './epochs.js';
import { InstanceService } from './instance.service.js';
import { KnownServers } from './known-servers.service.js';
import { ServerRepository } from './server.repository.js';
import { serverOf, type ServerRow } from './server.view.js';

/** What an answer to `server.put` may wait for running instances to end; the rest ends by itself. */
const PUT_WAITS_MS = 3_000;

/** Configurations of MCP servers: stored first, then told, then what runs is brought in line. */
@Injectable()
export class ServerService {
  constructor(
    @Inject(ServerRepository) private readonly repository: ServerRepository,
    @Inject(InstanceService) private readonly instances: InstanceService,
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(Epochs) private readonly epochs: Epochs,
    @Inject(KnownServers) private readonly known: KnownServers,
    @Inject(AuthorizationService) private readonly authorizations: AuthorizationService,
  ) {}

  async put(
    { ifVersion, ifGeneration, packaged, ...input }: Parsed<typeof mcpBroker.putServer>,
    call: Call,
  ): Promise<Returns<typeof mcpBroker.putServer>> {
    const spec = ServerSpec.parse(input);
    const { row, decision, moved } = await this.repository.put(
      {
        spec,
        at: new Date(),
        newId: randomUUID(),
        audit: auditOf(call, { action: 'server.put', target: '', projectId: spec.projectId }),
        digest: (one) => (one === undefined ? null : digestOf(JSON.parse(one.spec))),
      },
      (before, secrets) =>
        decidePut({
          before,
          spec,
          ifVersion,
          ifGeneration,
          secrets,
          urlProblem: (url) => this.instances.egress.problemOfUrl(url, 'put them in a header by reference to a secret'),
        }),
    );
    await this.epochs.publish(moved);
    if (decision.endsInstances) await this.endOld(row);
    else if (decision.restarts) this.instances.restart(row.id, 'What it may ask for has changed');
    if (packaged !== undefined) return this.putPackaged(row, packaged);
    if (row.enabled && row.catalogOf !== row.configGeneration) this.discovery.discover(row.id);
    return this.view(row);
  }

  async get(by: Parsed<typeof mcpBroker.getServer>): Promise<Returns<typeof mcpBroker.getServer>> {
    const row = await this.repository.find(by);
    if (row === null) throw fault(mcpBroker.getServer, 'SERVER_UNKNOWN');
    return this.view(row);
  }

  async list({ cursor, limit, ...where }: Parsed<typeof mcpBroker.listServers>): Promise<Returns<typeof mcpBroker.listServers>> {
    const rows = await this.repository.list(where, { after: cursor, limit });
    const last = rows.length === limit ? rows.at(-1) : undefined;
    return { items: await this.views(rows), ...(last === undefined ? {} : { cursor: last.id }) };
  }

  async delete({ id }: Parsed<typeof mcpBroker.deleteServer>, call: Call): Promise<Returns<typeof mcpBroker.deleteServer>> {
    const row = await this.repository.find({ id });
    if (row?.owner.startsWith('plugin:') === true) throw fault(mcpBroker.deleteServer, 'PLUGIN_OWNED', { owner: row.owner });
    const removed =
      row === null
        ? undefined
        : await this.repository.remove(
            id,
            new Date(),
            auditOf(call, { action: 'server.delete', target: `server:${id}`, projectId: row.projectId }),
          );
    if (removed === undefined) throw fault(mcpBroker.deleteServer, 'SERVER_UNKNOWN');
    this.discovery.forget(id);
    await this.epochs.publish(removed.moved);
    await this.instances.close([id], removed.instances, 'The server was removed');
    return { deleted: true };
  }

  /** By a person: what its configuration or its plugin says counts only while it is not switched off. */
  async switch({ id, on }: Parsed<typeof mcpBroker.switchServer>, call: Call): Promise<Returns<typeof mcpBroker.switchServer>> {
    const before = await this.repository.find({ id });
    const audit = { action: on ? 'server.enable' : 'server.disable', target: `server:${id}`, projectId: before?.projectId ?? null };
    const switched = await this.repository.switch(id, { on, at: new Date() }, auditOf(call, audit));
    if (switched === undefined) throw fault(mcpBroker.switchServer, 'SERVER_UNKNOWN');
    const { row, moved } = switched;
    await this.epochs.publish(moved);
    if (!row.enabled) await this.endOld(row);
    else if (row.catalogOf !== row.configGeneration) this.discovery.discover(row.id);
    return this.view(row);
  }

  /** Connects now and says how it went: a failure is an answer here, not a fault. */
  async test({ id }: Parsed<typeof mcpBroker.testServer>): Promise<Returns<typeof mcpBroker.testServer>> {
    const row = await this.repository.find({ id });
    if (row === null) throw fault(mcpBroker.testServer, 'SERVER_UNKNOWN');
    if (row.enabled) await this.instances.list(row).catch(() => undefined);
    return this.get({ id });
  }

  /** Takes an owner's servers away. Answers when none of their instances is held any more. */
  async revokeOwner(
    { owner, fence, remove }: Parsed<typeof mcpBroker.revokeOwner>,
    call: Call,
  ): Promise<Returns<typeof mcpBroker.revokeOwner>> {
    const { rows, instances, moved } = await this.repository.revoke(
      owner,
      { fence, remove, at: new Date() },
      auditOf(call, { action: remove ? 'owner.remove' : 'owner.revoke', target: `owner:${owner}`, projectId: null }),
    );
    for (const { id } of rows) this.discovery.forget(id);
    await this.epochs.publish(moved);
    await this.instances.close(
      rows.map(({ id }) => id),
      instances,
      `What belongs to ${owner} was taken away`,
    );
    return { closed: rows.length };
  }

  /** What a package lists of its server stands at once; nothing is started for it. */
  private async putPackaged(row: ServerRow, packaged: readonly JsonObject[]): Promise<Server> {
    await this.known.keepPackaged(row, packaged);
    return this.view((await this.repository.find({ id: row.id })) ?? row);
  }

  private async endOld(row: ServerRow): Promise<void> {
    const keep = row.enabled ? row.configGeneration : null;
    if (!row.enabled) this.discovery.forget(row.id);
    const old = await this.repository.instancesOf(row.id, keep);
    await this.instances.closeOlder(row, { keep, instanceIds: old, withinMs: PUT_WAITS_MS });
  }

  private async view(row: ServerRow): Promise<Server> {
    const [view] = await this.views([row]);
    if (view === undefined) throw new Error('one server has one view');
    return view;
  }

  private async views(rows: readonly ServerRow[]): Promise<Server[]> {
    const authorizations = await this.authorizations.of(rows);
    return rows.flatMap((row) => {
      const authorization = authorizations.get(row.id);
      return authorization === undefined ? [] : [serverOf(row, this.instances.isConnecting(row.id), authorization)];
    });
  }
}
