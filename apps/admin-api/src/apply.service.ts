import { treeDigest } from '@ambit/bundle';
import { randomUUID } from 'node:crypto';
import { Bus } from '@ambit/bus';
import {
  fault,
  Fault,
  httpApi,
  mcpBroker,
  pluginRegistry,
  platformFault,
  sessionService,
  skillStore,
  type DesiredState,
  type Plan,
  type PlannedChange,
  type Policy,
} from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { AccessRepository } from './access.repository.js';
import { auditOf } from './admin-audit.js';
import { storedPolicy } from './agent.routes.js';
import { AuthService } from './auth.service.js';
import { accessName, desiredItems } from './domain/desired.js';
import { planChanges } from './domain/plan.js';
import { tiedAgents } from './domain/ties.js';
import type { RequestContext } from './http/bound-route.js';
import { NotifyService } from './notify.service.js';
import { WorldService, type FoundThing } from './world.service.js';

type Request = Pick<RequestContext<typeof httpApi.apply>, 'caller' | 'signal' | 'now' | 'traceId'>;
interface Wanted {
  readonly desired: DesiredState;
  readonly policies: ReadonlyMap<string, Policy>;
  readonly world: readonly FoundThing[];
}

/** Plans a desired state against the world, and carries a plan out in order. */
@Injectable()
export class ApplyService {
  constructor(
    private readonly bus: Bus,
    private readonly world: WorldService,
    private readonly access: AccessRepository,
    private readonly auth: AuthService,
    private readonly notify: NotifyService,
  ) {}

  async plan(desired: DesiredState, prune: boolean, request: Request): Promise<Plan> {
    return (await this.prepare(desired, prune, request)).plan;
  }

  /** Carries out the plan with this digest; a world that changed meanwhile has another digest, and nothing is done. */
  async apply(
    input: { readonly desired: DesiredState; readonly prune: boolean; readonly digest: string },
    request: Request,
  ): Promise<Plan> {
    const { plan, wanted } = await this.prepare(input.desired, input.prune, request);
    if (plan.digest !== input.digest) throw fault(httpApi.apply, 'PLAN_STALE', { digest: plan.digest });
    let done = 0;
    let putOff = 0;
    const left = plan.changes.filter(({ action }) => action === 'create' || action === 'update' || action === 'delete');
    for (let change = left.shift(); change !== undefined; change = left.shift()) {
      try {
        await (change.action === 'delete' ? this.remove(change, wanted, request) : this.put(change, wanted, request));
        done += 1;
        putOff = 0;
      } catch (error) {
        if (!(error instanceof Fault)) throw error;
        // Its rules are another's still, whose turn comes.
        if (error.code === 'AGENT_AMBIGUOUS' && putOff++ < left.length) {
          left.push(change);
          continue;
        }
        const { kind, name } = change;
        const message = `${error.message}${error.data === undefined ? '' : ` ${JSON.stringify(error.data)}`}`.slice(0, 1_000);
        throw fault(
          httpApi.apply,
          'APPLY_FAILED',
          { kind, name, code: error.code, message, done },
          `${kind} ${name}: ${error.code}: ${message}. ${done} changes before it stand; applying again goes on from there.`,
        );
      }
    }
    this.auth.forget();
    return plan;
  }

  private async prepare(
    desired: DesiredState,
    prune: boolean,
    request: Request,
  ): Promise<{ readonly plan: Plan; readonly wanted: Wanted }> {
    const policies = new Map(
      Object.entries(desired.agents).map(([id, agent]) => [id, storedPolicy(agent.policy, `desired.agents.${id}.policy`)]),
    );
    for (const [agentId, names] of Object.entries(desired.agentSkills)) {
      const unknown = [
        ...(desired.agents[agentId] === undefined ? [`agent ${agentId}`] : []),
        ...names.filter((name) => desired.skills[name] === undefined).map((name) => `skill ${name}`),
      ];
      if (unknown.length > 0)
        throw platformFault(
          'INVALID_INPUT',
          { issues: unknown.map((name) => ({ path: `desired.agentSkills.${agentId}`, message: `${name} is not in this desired state` })) },
          `${unknown.join(', ')} is not in this desired state`,
        );
    }
    const world = await this.world.read(desired.project, {
      ...{ caller: request.caller, signal: request.signal },
      urls: new Set(desired.notify.map(({ webhook }) => webhook.url)),
    });
    const secrets = world.filter(
      ({ kind, name, set }) => kind === 'secret' && !(prune && set === desired.set && desired.secrets[name] === undefined),
    );
    this.notify.check(desired.notify, new Set([...Object.keys(desired.secrets), ...secrets.map(({ name }) => name)]));
    const items = desiredItems(desired, { policies, treeDigest });
    const tied = tiedAgents(items, world, { set: desired.set, prune });
    if (tied.length > 0) throw fault(httpApi.plan, 'AGENT_AMBIGUOUS', { agents: tied });
    const plan = planChanges(items, world, { set: desired.set, prune });
    return { plan, wanted: { desired, policies, world } };
  }

  private async put({ kind, name }: PlannedChange, { desired, policies }: Wanted, request: Request): Promise<void> {
    const options = { ...request.caller.identity, via: { kind: 'apply' as const, id: desired.set }, signal: request.signal };
    const place = { projectId: desired.project, set: desired.set };
    switch (kind) {
      case 'project':
        await this.bus.call(sessionService.putProject, { id: name }, options);
        return;
      case 'secret':
        await this.bus.call(mcpBroker.putSecret, { ...required(desired.secrets[name]), name, ...place }, options);
        return;
      case 'server':
        await this.bus.call(mcpBroker.putServer, { ...required(desired.servers[name]), slug: name, owner: 'user', ...place }, options);
        return;
      case 'plugin': {
        const { files, unsigned, publisher, enabled } = required(desired.plugins[name]);
        const by = publisher === undefined ? {} : { publisher };
        await this.bus.call(pluginRegistry.installPlugin, { files, unsigned, ...by, ...place }, options);
        await this.bus.call(enabled ? pluginRegistry.enablePlugin : pluginRegistry.disablePlugin, { id: name }, options);
        return;
      }
      case 'agent':
        await this.bus.call(
          sessionService.putAgent,
          { ...required(desired.agents[name]), id: name, policy: required(policies.get(name)), ...place },
          options,
        );
        return;
      case 'skill': {
        const [agentId = '', skill = ''] = name.split('/');
        const { files, scripts } = required(desired.skills[skill]);
        const put = await this.bus.call(skillStore.putSkill, { agentId, files, source: `apply:${desired.set}`, ...place }, options);
        const of = { agentId, name: put.name, digest: put.digest };
        for (const path of put.scripts.filter((one) => !scripts.includes(one)))
          await this.bus.call(skillStore.disableScript, { ...of, path }, options);
        for (const path of scripts) await this.bus.call(skillStore.enableScript, { ...of, path }, options);
        return;
      }
      case 'access': {
        const grant = required(desired.access.find((one) => accessName(one) === name));
        const row = { ...grant, id: randomUUID(), projectId: null, set: desired.set, createdAt: request.now.toISOString() };
        await this.access.createGrant(row, auditOf(request, { action: 'access.granted', target: name }));
        return;
      }
      case 'notify':
        await this.notify.put(required(desired.notify.find(({ webhook }) => webhook.url === name)), place, request);
        return;
    }
  }

  private async remove({ kind, name }: PlannedChange, { desired, world }: Wanted, request: Request): Promise<void> {
    const options = { ...request.caller.identity, via: { kind: 'apply' as const, id: desired.set }, signal: request.signal };
    const { id } = required(world.find((thing) => thing.kind === kind && thing.name === name));
    switch (kind) {
      case 'project':
        return;
      case 'secret':
        await this.notify.requireUnused({ projectId: desired.project, name });
        await this.bus.call(mcpBroker.deleteSecret, { name, projectId: desired.project }, options);
        return;
      case 'server':
        await this.bus.call(mcpBroker.deleteServer, { id }, options);
        return;
      case 'plugin':
        await this.bus.call(pluginRegistry.uninstallPlugin, { id }, options);
        return;
      case 'agent':
        await this.bus.call(sessionService.deleteAgent, { id }, options);
        return;
      case 'skill': {
        const [agentId = '', skill = ''] = name.split('/');
        await this.bus.call(skillStore.deleteSkill, { agentId, name: skill }, options);
        return;
      }
      case 'access':
        await this.access.deleteGrant(id, auditOf(request, { action: 'access.revoked', target: id, reason: name }));
        return;
      case 'notify':
        await this.notify.remove(id, { projectId: desired.project, url: name }, request);
        return;
    }
  }
}

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the plan names something that the desired state does not have');
  return value;
}
