import type { Call } from '@ambit/bus';
import { fault, Fault, platformFault, pluginRegistry, type Parsed, type Plugin, type Returns } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { Availability } from './availability.js';
import { restingState } from './domain/standing.js';
import { Fences } from './fences.js';
import { IntakeService, type Taken } from './intake.service.js';
import { LifecycleService } from './lifecycle.service.js';
import { Operations, type Held } from './operations.js';
import { byRequest, changeOf, type Cause } from './plugin.change.js';
import { NOTHING, PluginRepository, type Installation, type Package } from './plugin.repository.js';
import { viewOf } from './plugin.view.js';
import { VerificationService } from './verification.service.js';

/** Installs, switches and forgets plugins; one operation a plugin at a time. */
@Injectable()
export class PluginService {
  constructor(
    private readonly intake: IntakeService,
    private readonly repository: PluginRepository,
    private readonly availability: Availability,
    private readonly operations: Operations,
    private readonly lifecycle: LifecycleService,
    private readonly fences: Fences,
    private readonly verification: VerificationService,
  ) {}

  async install(request: Parsed<typeof pluginRegistry.installPlugin>, call: Call): Promise<Plugin> {
    const found = await this.intake.read(request);
    this.verification.admit(found.signer, request);
    const { signedBy, signingKey } = found.signer;
    const { projectId, set } = request;
    const reason = await this.availability.problemOf(found, found.signer);
    const cause = byRequest(call);
    const created = await this.repository.create(changeOf('installed', { cause, after: found.digest }), {
      id: found.manifest.id,
      digest: found.digest,
      state: restingState({ wanted: 'disabled', problem: reason, isQuarantined: false }),
      ...{ projectId, set, reason, signedBy, signingKey },
    });
    if (created !== undefined) {
      await this.fences.publish(created.id, created);
      return viewOf(created, found);
    }
    return this.operations.exclusively(found.manifest.id, async (held) => {
      const current = held.installation;
      if (current.projectId !== projectId) throw fault(pluginRegistry.installPlugin, 'PLUGIN_TAKEN', { projectId: current.projectId });
      this.verification.succeed(found.signer, current);
      if (current.digest === found.digest && current.set === set && current.signingKey === signingKey) return viewOf(current, found);
      return viewOf(await this.swap(held, found, { set, cause }), found);
    });
  }

  /** Another package: nothing of the old one may stay executable against the new one's process. */
  private async swap(
    held: Held,
    found: Taken,
    { set, cause }: { readonly set: string | null; readonly cause: Cause },
  ): Promise<Installation> {
    const { installation: before } = held;
    const { signedBy, signingKey } = found.signer;
    if (before.state === 'enabled')
      await this.lifecycle.takeAway(held, {
        cause,
        action: 'unavailable',
        state: 'unavailable',
        reason: 'it is being updated',
        unfinished: 1,
      });
    const change = changeOf('updated', { cause, before: before.digest, after: found.digest });
    const updated = await this.repository.update(change, held, { digest: found.digest, set, signedBy, signingKey });
    const next = { ...held, installation: updated };
    if (updated.wanted !== 'enabled' || updated.quarantined === found.digest)
      return this.lifecycle.rest(next, { cause, wanted: wantedOf(updated), problem: await this.availability.problemOf(found, updated) });
    try {
      return await this.lifecycle.activate(next, found, { cause, tries: 1 });
    } catch (error) {
      // It is installed; that it is not there now, and why, stands in its state.
      if (!(error instanceof Fault)) throw error;
      return this.found(updated.id);
    }
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

  /** Of a plugin in quarantine it is the retry. */
  enable(id: string, call: Call): Promise<Plugin> {
    return this.operations.exclusively(id, async (held) => {
      const found = await this.packageOf(held.installation);
      if (held.installation.state === 'enabled') return viewOf(held.installation, found);
      return viewOf(await this.lifecycle.activate(held, found, { cause: byRequest(call), tries: 1 }), found);
    });
  }

  disable(id: string, call: Call): Promise<Plugin> {
    return this.operations.exclusively(id, async (held) => {
      const cause = byRequest(call);
      const found = await this.packageOf(held.installation);
      if (held.installation.state === 'enabled')
        return viewOf(await this.lifecycle.takeAway(held, { cause, action: 'disabled', state: 'disabled', wanted: 'disabled' }), found);
      await this.lifecycle.settle(held.installation);
      if (held.installation.wanted === 'disabled') return viewOf(held.installation, found);
      return viewOf(
        await this.lifecycle.rest(held, {
          cause,
          wanted: 'disabled',
          problem: await this.availability.problemOf(found, held.installation),
        }),
        found,
      );
    });
  }

  async uninstall(id: string, call: Call): Promise<{ uninstalled: boolean }> {
    return this.operations.exclusively(id, async (held) => {
      const cause = byRequest(call);
      const last =
        held.installation.state === 'enabled'
          ? await this.lifecycle.takeAway(held, { cause, action: 'disabled', state: 'disabled', wanted: 'disabled' })
          : held.installation;
      // Who forgets it now leaves behind what nobody would ever take away.
      if (!(await this.lifecycle.settle(last)))
        throw platformFault(
          'UNAVAILABLE',
          undefined,
          'It is switched off, and not everybody has acknowledged that yet: uninstall it again',
        );
      await this.repository.remove(changeOf('uninstalled', { cause, before: last.digest }), held);
      return { uninstalled: true };
    });
  }

  async slots({ projectId }: Parsed<typeof pluginRegistry.pluginSlots>): Promise<Returns<typeof pluginRegistry.pluginSlots>> {
    const rows = await this.repository.list({ projectId }, { limit: 1_000 });
    const plugins = await Promise.all(
      rows.map(async (row) => {
        const { version, agents } = (await this.packageOf(row)).manifest;
        const contributes = row.state === 'enabled' ? { ...row.contributes, agents } : { ...NOTHING, agents: [] };
        return { id: row.id, version, digest: row.digest, state: viewState(row.state), ...contributes };
      }),
    );
    return { epoch: rows.reduce((sum, row) => sum + row.epoch, 0), plugins };
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

const wantedOf = ({ wanted }: Installation) => (wanted === 'enabled' ? 'enabled' : 'disabled');

function viewState(state: string): Plugin['state'] {
  return state === 'enabled' || state === 'unavailable' ? state : 'disabled';
}
