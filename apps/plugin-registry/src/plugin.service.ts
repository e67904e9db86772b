import { randomUUID } from 'node:crypto';
import type { Call } from '@ambit/bus';
import { fault, Fault, pluginRegistry, type Parsed, type Plugin, type Returns } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { ActivationService, type Contributed } from './activation.service.js';
import { Fences } from './fences.js';
import { IntakeService } from './intake.service.js';
import { PluginRepository, type Installation, type Package, type PluginChange } from './plugin.repository.js';
import { viewOf } from './plugin.view.js';
import { RevocationService } from './revocation.service.js';

const OPERATION_MS = 60_000;
const NOTHING: Contributed = { servers: [], skills: [] };

/** Installs, switches and forgets plugins; one operation a plugin at a time. */
@Injectable()
export class PluginService {
  constructor(
    private readonly intake: IntakeService,
    private readonly repository: PluginRepository,
    private readonly activation: ActivationService,
    private readonly revocation: RevocationService,
    private readonly fences: Fences,
  ) {}

  async install(request: Parsed<typeof pluginRegistry.installPlugin>, call: Call): Promise<Plugin> {
    const found = await this.intake.read(request);
    if (request.unsigned !== 'allow') throw fault(pluginRegistry.installPlugin, 'PLUGIN_UNTRUSTED');
    const known = await this.repository.find(found.manifest.id);
    if (known === undefined) {
      const created = await this.repository.create(changeOf('installed', { call, after: found.digest }), {
        id: found.manifest.id,
        projectId: request.projectId,
        digest: found.digest,
        set: request.set,
      });
      await this.fences.publish(created.id, created);
      return viewOf(created, found);
    }
    if (known.digest === found.digest && known.set === request.set) return viewOf(known, found);
    // Another package: nothing of the old one may stay executable against the new one's process.
    return this.exclusively(known.id, async (current) => {
      const wasEnabled = current.state === 'enabled';
      if (wasEnabled) await this.takeAway(current, { action: 'disabled', call, keepWanted: true });
      const updated = await this.repository.update(changeOf('updated', { call, before: current.digest, after: found.digest }), current.id, {
        digest: found.digest,
        set: request.set,
      });
      return wasEnabled ? this.activate(updated, found, call) : viewOf(updated, found);
    });
  }

  async get(id: string): Promise<Plugin> {
    const installation = await this.found(id);
    return viewOf(installation, await this.packageOf(installation));
  }

  async list({
    projectId,
    set,
    cursor,
    limit,
  }: Parsed<typeof pluginRegistry.listPlugins>): Promise<Returns<typeof pluginRegistry.listPlugins>> {
    const where = { ...(projectId === undefined ? {} : { projectId }), ...(set === undefined ? {} : { set }) };
    const rows = await this.repository.list(where, { limit: limit + 1, ...(cursor === undefined ? {} : { after: cursor }) });
    const items = await Promise.all(rows.slice(0, limit).map(async (row) => viewOf(row, await this.packageOf(row))));
    const last = rows.length > limit ? rows[limit - 1] : undefined;
    return { items, ...(last === undefined ? {} : { cursor: last.id }) };
  }

  enable(id: string, call: Call): Promise<Plugin> {
    return this.exclusively(id, async (installation) => {
      const found = await this.packageOf(installation);
      return installation.state === 'enabled' ? viewOf(installation, found) : this.activate(installation, found, call);
    });
  }

  disable(id: string, call: Call): Promise<Plugin> {
    return this.exclusively(id, async (installation) => {
      const found = await this.packageOf(installation);
      if (installation.state !== 'enabled') return viewOf(installation, found);
      return viewOf(await this.takeAway(installation, { action: 'disabled', call, keepWanted: false }), found);
    });
  }

  async uninstall(id: string, call: Call): Promise<{ uninstalled: boolean }> {
    return this.exclusively(id, async (installation) => {
      const last =
        installation.state === 'enabled'
          ? await this.takeAway(installation, { action: 'disabled', call, keepWanted: false })
          : installation;
      await this.repository.remove(changeOf('uninstalled', { call, before: last.digest }), last);
      return { uninstalled: true };
    });
  }

  async slots({ projectId }: Parsed<typeof pluginRegistry.pluginSlots>): Promise<Returns<typeof pluginRegistry.pluginSlots>> {
    const rows = await this.repository.list({ projectId }, { limit: 1_000 });
    const plugins = await Promise.all(
      rows.map(async (row) => ({
        id: row.id,
        version: (await this.packageOf(row)).manifest.version,
        digest: row.digest,
        state: viewState(row.state),
        ...(row.state === 'enabled' ? row.contributes : NOTHING),
        agents: [],
      })),
    );
    return { epoch: rows.reduce((latest, row) => Math.max(latest, row.epoch), 0), plugins };
  }

  /** All or nothing: whatever was contributed before a failure is revoked before the failure is told. */
  private async activate(installation: Installation, found: Package, call: Call): Promise<Plugin> {
    try {
      const contributes = await this.activation.contribute(found, installation, call);
      const enabled = await this.repository.update(changeOf('enabled', { call, after: found.digest }), installation.id, {
        state: 'enabled',
        wanted: 'enabled',
        reason: null,
        contributes,
      });
      await this.fences.publish(enabled.id, enabled);
      await this.fences.renew(enabled.id);
      return viewOf(enabled, found);
    } catch (error) {
      const reason = error instanceof Fault ? JSON.stringify(error.data ?? error.message).slice(0, 1_000) : 'an internal error';
      const failed = await this.repository.update(changeOf('disabled', { call, before: found.digest, reason }), installation.id, {
        state: 'disabled',
        reason,
        contributes: NOTHING,
        takes: true,
      });
      await this.revocation.revoke(failed);
      throw error;
    }
  }

  private async takeAway(
    installation: Installation,
    how: { readonly action: PluginChange['action']; readonly call: Call; readonly keepWanted: boolean },
  ): Promise<Installation> {
    const update = {
      state: 'disabled',
      contributes: NOTHING,
      takes: true,
      reason: null,
      ...(how.keepWanted ? {} : { wanted: 'disabled' }),
    };
    const disabled = await this.repository.update(
      changeOf(how.action, { call: how.call, before: installation.digest }),
      installation.id,
      update,
    );
    await this.revocation.revoke(disabled);
    return disabled;
  }

  private async exclusively<T>(id: string, work: (installation: Installation) => Promise<T>): Promise<T> {
    await this.found(id);
    const operation = randomUUID();
    for (;;) {
      const now = new Date();
      if (await this.repository.take(id, operation, { now, end: new Date(now.getTime() + OPERATION_MS) })) break;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    try {
      return await work(await this.found(id));
    } finally {
      await this.repository.release(id, operation);
    }
  }

  private async found(id: string): Promise<Installation> {
    const installation = await this.repository.find(id);
    if (installation === undefined) throw fault(pluginRegistry.getPlugin, 'PLUGIN_UNKNOWN');
    return installation;
  }

  private async packageOf(installation: Installation): Promise<Package> {
    const found = await this.repository.package(installation.digest);
    if (found === undefined) throw new Error(`the package ${installation.digest} of ${installation.id} is missing`);
    return found;
  }
}

function viewState(state: string): Plugin['state'] {
  return state === 'enabled' || state === 'unavailable' ? state : 'disabled';
}

function changeOf(
  action: PluginChange['action'],
  about: { readonly call: Call; readonly before?: string; readonly after?: string; readonly reason?: string },
): PluginChange {
  const { principal, actor, via, traceId, startedAt } = about.call;
  return {
    at: startedAt,
    action,
    audit: {
      actor: actor ?? null,
      principal: principal ?? null,
      via: via ?? null,
      projectId: null,
      beforeDigest: about.before ?? null,
      afterDigest: about.after ?? null,
      rule: null,
      reason: about.reason ?? null,
      traceId,
      retention: 'audit',
    },
  };
}
