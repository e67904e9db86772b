import { Bus } from '@ambit/bus';
import { httpApi, platformFault, sessionService, skillStore, type Interaction, type Run, type Session } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { bind, type RequestContext } from './http/bound-route.js';
import type { Caller } from './http/caller.js';
import { RunEvents } from './run-events.js';

type Asking = Pick<RequestContext<typeof httpApi.getSession>, 'caller' | 'signal'>;

/** Messages, sessions, runs and decisions. A client sees what is its own; readers see what their roles reach. */
@Injectable()
export class SessionRoutes {
  constructor(
    private readonly bus: Bus,
    private readonly events: RunEvents,
  ) {}

  readonly routes = [
    bind(httpApi.postMessage, ({ body, caller, idempotencyKey, signal }) => {
      if (idempotencyKey === undefined || idempotencyKey.length > 200)
        throw platformFault(
          'INVALID_INPUT',
          { issues: [{ path: 'Idempotency-Key', message: 'a header of 1 to 200 characters' }] },
          'Send an Idempotency-Key header; the same key again is the same message',
        );
      requireSender(caller, body.principal.id, body.agentId);
      return this.bus.call(
        sessionService.receiveMessage,
        { ...body, idempotencyKey },
        { ...caller.identity, principal: body.principal, signal },
      );
    }),
    bind(httpApi.createSession, ({ body, caller, signal }) => {
      requireSender(caller, body.principal.id, body.agentId);
      return this.bus.call(sessionService.createSession, body, { ...caller.identity, principal: body.principal, signal });
    }),
    bind(
      httpApi.listSessions,
      ({ query, caller, signal }) => {
        const own = caller.may('read', query) ? query : { ...query, principalId: query.principalId ?? caller.principal.id };
        if (own.principalId !== undefined && !caller.may('read', query) && !caller.mayActFor(own.principalId, query))
          caller.require('read', query);
        return this.bus.call(sessionService.listSessions, own, { ...caller.identity, signal });
      },
      ['send'],
    ),
    bind(httpApi.getSession, (request) => this.session(request, request.params.id), ['send']),
    bind(
      httpApi.listCommands,
      async (request) => {
        const { id } = await this.session(request, request.params.id);
        return this.bus.call(sessionService.listCommands, { sessionId: id }, { ...request.caller.identity, signal: request.signal });
      },
      ['send'],
    ),
    bind(httpApi.listSkillDrafts, async (request) => {
      const { id: sessionId } = await this.session(request, request.params.id);
      return this.bus.call(skillStore.listDrafts, { sessionId }, { ...request.caller.identity, signal: request.signal });
    }),
    bind(httpApi.getSkillDraft, async (request) => {
      const { id: sessionId } = await this.session(request, request.params.id);
      const { name } = request.params;
      return this.bus.call(skillStore.readDraft, { sessionId, name }, { ...request.caller.identity, signal: request.signal });
    }),
    bind(httpApi.discardSkillDraft, async (request) => {
      const session = await this.session(request, request.params.id);
      request.caller.require('operate', session);
      const { name } = request.params;
      return this.bus.call(
        skillStore.discardDraft,
        { sessionId: session.id, name },
        { ...request.caller.identity, signal: request.signal },
      );
    }),
    bind(httpApi.deleteSession, async (request) => {
      const session = await this.session(request, request.params.id);
      request.caller.require('operate', session);
      return this.bus.call(sessionService.deleteSession, request.params, { ...request.caller.identity, signal: request.signal });
    }),
    bind(
      httpApi.updateSession,
      async (request) => {
        const { params, body, caller, ifVersion, signal } = request;
        await this.own(request, params.id);
        const change = { ...params, ...body, ...(ifVersion === undefined ? {} : { ifVersion }) };
        return this.bus.call(sessionService.updateSession, change, { ...caller.identity, signal });
      },
      ['send'],
    ),
    bind(httpApi.transferSession, async (request) => {
      const { params, body, caller, signal } = request;
      caller.require('operate', await this.session(request, params.id));
      // Whoever gives a session to an agent could as well send it messages.
      caller.require('operate', { agentId: body.agentId });
      return this.bus.call(sessionService.transferSession, { ...params, ...body }, { ...caller.identity, signal });
    }),
    bind(
      httpApi.forkSession,
      async (request) => {
        await this.own(request, request.params.id);
        return this.bus.call(sessionService.forkSession, request.params, { ...request.caller.identity, signal: request.signal });
      },
      ['send'],
    ),
    bind(
      httpApi.clearSession,
      async (request) => {
        await this.own(request, request.params.id);
        return this.bus.call(sessionService.clearSession, request.params, { ...request.caller.identity, signal: request.signal });
      },
      ['send'],
    ),
    bind(
      httpApi.listDelegations,
      async (request) => {
        const { id } = await this.session(request, request.params.id);
        return this.bus.call(sessionService.listDelegations, { sessionId: id }, { ...request.caller.identity, signal: request.signal });
      },
      ['send'],
    ),
    bind(httpApi.createDraft, ({ body, caller, signal }) => {
      requireSender(caller, body.principal.id, body.agentId);
      return this.bus.call(sessionService.createDraft, body, { ...caller.identity, principal: body.principal, signal });
    }),
    bind(
      httpApi.listTape,
      async (request) => {
        await this.session(request, request.params.id);
        return this.bus.call(
          sessionService.listTape,
          { sessionId: request.params.id, ...request.query },
          { ...request.caller.identity, signal: request.signal },
        );
      },
      ['send'],
    ),

    bind(
      httpApi.listRuns,
      async (request) => {
        const { query, caller, signal } = request;
        if (query.sessionId !== undefined) await this.session(request, query.sessionId);
        else caller.require('read', query);
        return this.bus.call(sessionService.listRuns, query, { ...caller.identity, signal });
      },
      ['send'],
    ),
    bind(httpApi.getRun, (request) => this.run(request, request.params.id), ['send']),
    bind(
      httpApi.cancelRun,
      async (request) => {
        const run = await this.run(request, request.params.id);
        if (!request.caller.may('operate', run) && !request.caller.mayActFor(run.principal.id, run)) request.caller.require('operate', run);
        return this.bus.call(
          sessionService.cancelRun,
          { id: run.id, ...request.body },
          { ...request.caller.identity, signal: request.signal },
        );
      },
      ['send'],
    ),
    bind(
      httpApi.followRun,
      async (request, response) => {
        const run = await this.run(request, request.params.id);
        await this.events.stream(run, request, response);
      },
      ['send'],
    ),

    bind(
      httpApi.listInteractions,
      async (request) => {
        const { query, caller, signal } = request;
        if (query.sessionId !== undefined) await this.session(request, query.sessionId);
        else caller.require('decide', query);
        return this.bus.call(sessionService.listInteractions, query, { ...caller.identity, signal });
      },
      ['send', 'read'],
    ),
    bind(httpApi.getInteraction, (request) => this.interaction(request, request.params.id), ['send', 'read']),
    bind(
      httpApi.decideInteraction,
      async (request) => {
        const { params, body, caller, signal } = request;
        const interaction = await this.interaction(request, params.id);
        // Whether this person is one of the rule's approvers is session-service's to say; here: whether a role lets it decide at all.
        if (caller.principal.id !== interaction.principal.id) caller.require('decide', interaction);
        return this.bus.call(
          sessionService.decideInteraction,
          { id: params.id, ...body, by: caller.principal, groups: [...caller.groups] },
          { ...caller.identity, signal },
        );
      },
      ['send'],
    ),
  ];

  private async session({ caller, signal }: Asking, id: string): Promise<Session> {
    const session = await this.bus.call(sessionService.getSession, { id }, { ...caller.identity, signal });
    caller.requireSession(session);
    return session;
  }

  /** A session that the caller may change: by its role, or because it is for whom it acts. */
  private async own({ caller, signal }: Asking, id: string): Promise<Session> {
    const session = await this.bus.call(sessionService.getSession, { id }, { ...caller.identity, signal });
    caller.requireSession(session, 'operate');
    return session;
  }

  private async run({ caller, signal }: Asking, id: string): Promise<Run> {
    const run = await this.bus.call(sessionService.getRun, { id }, { ...caller.identity, signal });
    caller.requireSession(run);
    return run;
  }

  private async interaction({ caller, signal }: Asking, id: string): Promise<Interaction> {
    const interaction = await this.bus.call(sessionService.getInteraction, { id }, { ...caller.identity, signal });
    if (caller.principal.id !== interaction.principal.id && !caller.may('decide', interaction)) caller.requireSession(interaction);
    return interaction;
  }
}

function requireSender(caller: Caller, principalId: string, agentId: string | undefined): void {
  if (caller.mayActFor(principalId, { agentId })) {
    if (caller.may('send', { agentId }) || agentId === undefined) return;
  }
  throw platformFault(
    'FORBIDDEN',
    undefined,
    `${caller.principal.id} has no role that may send for ${principalId}${agentId === undefined ? '' : ` to ${agentId}`}`,
  );
}
