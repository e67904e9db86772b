import { Bus } from '@ambit/bus';
import { httpApi, pluginRegistry, sessionService, skillStore } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { bind } from './http/bound-route.js';
import type { Caller } from './http/caller.js';

/** Skills and plugins, and the bytes that both are made of. */
@Injectable()
export class SkillRoutes {
  constructor(private readonly bus: Bus) {}

  readonly routes = [
    bind(httpApi.putSkillBlob, ({ body, caller, signal }) => this.bus.call(skillStore.putBlob, body, { ...caller.identity, signal })),
    bind(httpApi.putPluginBlob, ({ body, caller, signal }) => this.bus.call(pluginRegistry.putBlob, body, { ...caller.identity, signal })),

    bind(httpApi.listSkills, ({ query, caller, signal }) => {
      caller.require('read', query);
      return this.bus.call(skillStore.listSkills, query, { ...caller.identity, signal });
    }),
    bind(httpApi.getSkill, async ({ params, caller, signal }) => {
      const skill = await this.bus.call(skillStore.getSkill, params, { ...caller.identity, signal });
      caller.require('read', skill);
      return skill;
    }),
    bind(httpApi.putSkill, ({ params, body, caller, ifVersion, signal }) => {
      caller.require('operate', { projectId: body.projectId, ...params });
      return this.bus.call(
        skillStore.putSkill,
        { ...body, ...params, ...(ifVersion === undefined ? {} : { ifVersion }) },
        { ...caller.identity, signal },
      );
    }),
    bind(httpApi.enableSkill, async ({ params, caller, signal }) => {
      caller.require('operate', await this.bus.call(skillStore.getSkill, params, { ...caller.identity, signal }));
      return this.bus.call(skillStore.enableSkill, params, { ...caller.identity, signal });
    }),
    bind(httpApi.disableSkill, async ({ params, caller, signal }) => {
      caller.require('operate', await this.bus.call(skillStore.getSkill, params, { ...caller.identity, signal }));
      return this.bus.call(skillStore.disableSkill, params, { ...caller.identity, signal });
    }),
    // Of a plugin's skill too, which stands in no scope: it is the agent that is to run it.
    bind(httpApi.enableScript, async ({ params, body, caller, signal }) => {
      await this.#require('administer', params.agentId, { caller, signal });
      return this.bus.call(skillStore.enableScript, { ...params, ...body }, { ...caller.identity, signal });
    }),
    bind(httpApi.disableScript, async ({ params, body, caller, signal }) => {
      await this.#require('operate', params.agentId, { caller, signal });
      return this.bus.call(skillStore.disableScript, { ...params, ...body }, { ...caller.identity, signal });
    }),
    bind(httpApi.deleteSkill, async ({ params, caller, signal }) => {
      if (!caller.may('operate'))
        caller.require('operate', await this.bus.call(skillStore.getSkill, params, { ...caller.identity, signal }));
      return this.bus.call(skillStore.deleteSkill, params, { ...caller.identity, signal });
    }),

    bind(httpApi.listPlugins, ({ query, caller, signal }) => {
      caller.require('read', { projectId: query.projectId });
      return this.bus.call(pluginRegistry.listPlugins, query, { ...caller.identity, signal });
    }),
    bind(httpApi.getPlugin, async ({ params, caller, signal }) => {
      const plugin = await this.bus.call(pluginRegistry.getPlugin, params, { ...caller.identity, signal });
      caller.require('read', { projectId: plugin.projectId });
      return plugin;
    }),
    bind(httpApi.installPlugin, ({ body, caller, signal }) => {
      caller.require('administer', { projectId: body.projectId });
      return this.bus.call(pluginRegistry.installPlugin, body, { ...caller.identity, signal });
    }),
    bind(httpApi.enablePlugin, async ({ params, caller, signal }) => {
      caller.require('administer', {
        projectId: (await this.bus.call(pluginRegistry.getPlugin, params, { ...caller.identity, signal })).projectId,
      });
      return this.bus.call(pluginRegistry.enablePlugin, params, { ...caller.identity, signal });
    }),
    bind(httpApi.disablePlugin, async ({ params, caller, signal }) => {
      caller.require('operate', {
        projectId: (await this.bus.call(pluginRegistry.getPlugin, params, { ...caller.identity, signal })).projectId,
      });
      return this.bus.call(pluginRegistry.disablePlugin, params, { ...caller.identity, signal });
    }),
    bind(httpApi.uninstallPlugin, async ({ params, caller, signal }) => {
      caller.require('administer', {
        projectId: (await this.bus.call(pluginRegistry.getPlugin, params, { ...caller.identity, signal })).projectId,
      });
      return this.bus.call(pluginRegistry.uninstallPlugin, params, { ...caller.identity, signal });
    }),
    bind(httpApi.listPublishers, ({ query, caller, signal }) => {
      caller.require('read');
      return this.bus.call(pluginRegistry.listPublishers, query, { ...caller.identity, signal });
    }),
    bind(httpApi.trustPublisher, ({ body, caller, signal }) => {
      caller.require('administer');
      return this.bus.call(pluginRegistry.trustPublisher, body, { ...caller.identity, signal });
    }),
    bind(httpApi.distrustPublisher, ({ params, caller, signal }) => {
      caller.require('administer');
      return this.bus.call(pluginRegistry.distrustPublisher, params, { ...caller.identity, signal });
    }),
  ];

  async #require(
    action: 'administer' | 'operate',
    agentId: string,
    { caller, signal }: { readonly caller: Caller; readonly signal: AbortSignal },
  ): Promise<void> {
    if (caller.may(action)) return;
    const { projectId } = await this.bus.call(sessionService.getAgent, { id: agentId }, { ...caller.identity, signal });
    caller.require(action, { projectId, agentId });
  }
}
