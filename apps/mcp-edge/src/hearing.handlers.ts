import { Hears, Listens } from '@ambit/bus';
import { mcpBroker, mcpEdge, pluginRegistry, sessionService, skillStore, toolGateway } from '@ambit/contracts';
import { Controller } from '@nestjs/common';
import type { z } from 'zod';
import { Decisions } from './decision.service.js';
import { Inflight } from './inflight.js';
import { Streams } from './streams.service.js';
import { Worlds } from './worlds.service.js';

type Of<C extends { readonly payload: z.ZodType }> = z.output<C['payload']>;

/** Each replica hears for itself: what it holds may be old. */
const EACH = { everyReplica: true, concurrency: 8 };

/** What others tell: that something changed, that a decision was asked for or taken, how far a call is, what a client sent elsewhere. */
@Controller()
export class HearingHandlers {
  constructor(
    private readonly worlds: Worlds,
    private readonly decisions: Decisions,
    private readonly inflight: Inflight,
    private readonly streams: Streams,
  ) {}

  @Hears(mcpBroker.catalogueChanged, EACH) catalogueChanged({ projectId }: Of<typeof mcpBroker.catalogueChanged>): void {
    this.worlds.changed({ projectId });
  }
  @Hears(sessionService.agentChanged, EACH) agentChanged({ agentId }: Of<typeof sessionService.agentChanged>): void {
    this.worlds.changed({ agentId });
  }
  @Hears(toolGateway.toolsChanged, EACH) toolsChanged({ agentId }: Of<typeof toolGateway.toolsChanged>): void {
    this.worlds.changed({ agentId });
  }
  @Hears(skillStore.skillChanged, EACH) skillChanged({ agentId }: Of<typeof skillStore.skillChanged>): void {
    this.worlds.changed({ agentId });
  }
  @Hears(pluginRegistry.pluginChanged, EACH) pluginChanged(): void {
    this.worlds.changed({});
  }

  @Hears(sessionService.interactionRequested, EACH) requested({ interaction }: Of<typeof sessionService.interactionRequested>): void {
    this.decisions.requested(interaction);
  }
  @Hears(sessionService.interactionSettled, EACH) settled({ interactionId }: Of<typeof sessionService.interactionSettled>): void {
    this.decisions.settled(interactionId);
  }

  @Listens(mcpEdge.callProgress) progress({ operationId, ...progress }: Of<typeof mcpEdge.callProgress>): void {
    this.inflight.progressed(operationId, progress);
  }
  @Listens(mcpEdge.callLogged) logged({ operationId, ...log }: Of<typeof mcpEdge.callLogged>): void {
    this.inflight.logged(operationId, log);
  }
  @Listens(mcpEdge.resourceFollowed) followed({ clientId, uri, isOn }: Of<typeof mcpEdge.resourceFollowed>): void {
    this.streams.follow(clientId, uri, isOn);
  }
  @Listens(mcpBroker.resourceUpdated) updated({ sessionId, uri, params }: Of<typeof mcpBroker.resourceUpdated>): void {
    this.streams.updated(sessionId, uri, params);
  }
  @Listens(mcpEdge.requestCancelled) cancelled({ clientId, requestId, reason }: Of<typeof mcpEdge.requestCancelled>): void {
    this.inflight.cancelled(clientId, requestId, reason);
  }
  @Listens(mcpEdge.clientAnswered) answered({ clientId, requestId, ...answer }: Of<typeof mcpEdge.clientAnswered>): void {
    this.inflight.answered(clientId, requestId, answer);
  }
}
