import { Bus } from '@ambit/bus';
import { PolicyDocument, policyFromDocument, policyToDocument } from '@ambit/capability';
import { httpApi, platformFault, sessionService, type Agent, type AgentDocument, type Policy, type WrittenAgent } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { bind } from './http/bound-route.js';

/** An agent with its policy as people write it. */
function writtenAgent(agent: Agent): WrittenAgent {
  return { ...agent, policy: { ...policyToDocument(agent.policy) } };
}

/** The stored form of a written policy; says which part of it is wrong. */
export function storedPolicy(policy: AgentDocument['policy'], path: string): Policy {
  const parsed = PolicyDocument.safeParse(policy);
  if (parsed.success) return policyFromDocument(parsed.data);
  const issues = parsed.error.issues
    .slice(0, 20)
    .map((issue) => ({ path: [path, ...issue.path.map(String)].join('.'), message: issue.message }));
  throw platformFault(
    'INVALID_INPUT',
    { issues },
    issues
      .map((issue) => `${issue.path}: ${issue.message}`)
      .join('; ')
      .slice(0, 1_000),
  );
}

/** Projects and agents. */
@Injectable()
export class AgentRoutes {
  constructor(private readonly bus: Bus) {}

  readonly routes = [
    bind(httpApi.listProjects, ({ query, caller, signal }) => {
      caller.require('read');
      return this.bus.call(sessionService.listProjects, query, { ...caller.identity, signal });
    }),
    bind(httpApi.putProject, ({ params, body, caller, signal }) => {
      caller.require('administer', { projectId: params.id });
      return this.bus.call(sessionService.putProject, { ...params, ...body }, { ...caller.identity, signal });
    }),
    bind(httpApi.listAgents, async ({ query, caller, signal }) => {
      caller.require('read', { projectId: query.projectId });
      const page = await this.bus.call(sessionService.listAgents, query, { ...caller.identity, signal });
      return { ...page, items: page.items.map(writtenAgent) };
    }),
    bind(httpApi.getAgent, async ({ params, caller, signal }) => {
      const agent = await this.bus.call(sessionService.getAgent, params, { ...caller.identity, signal });
      caller.require('read', { projectId: agent.projectId, agentId: agent.id });
      return writtenAgent(agent);
    }),
    bind(httpApi.putAgent, async ({ params, body, caller, ifVersion, signal }) => {
      caller.require('administer', { projectId: body.projectId, agentId: params.id });
      const spec = {
        ...body,
        id: params.id,
        policy: storedPolicy(body.policy, 'body.policy'),
        ...(ifVersion === undefined ? {} : { ifVersion }),
      };
      return writtenAgent(await this.bus.call(sessionService.putAgent, spec, { ...caller.identity, signal }));
    }),
    bind(httpApi.deleteAgent, async ({ params, caller, signal }) => {
      const agent = await this.bus.call(sessionService.getAgent, params, { ...caller.identity, signal });
      caller.require('administer', { projectId: agent.projectId, agentId: agent.id });
      return this.bus.call(sessionService.deleteAgent, params, { ...caller.identity, signal });
    }),
    bind(httpApi.matchAgent, ({ body, caller, signal }) => {
      caller.require('read');
      return this.bus.call(sessionService.matchAgent, body, { ...caller.identity, signal });
    }),
  ];
}
