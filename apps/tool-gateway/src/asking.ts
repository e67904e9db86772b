import {
  approvedTarget,
  argumentsHash,
  isObject,
  parseArguments,
  previewArguments,
  BadArguments,
  INTERACTION_MS,
  type Asks,
  type AsksQuestion,
} from '@ambit/capability';
import { Bus } from '@ambit/bus';
import { Fault, sessionService, type Input } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';
import type { BatchStart } from './batch.runner.js';
import { faultBody, type CallEnd } from './domain/call-end.js';
import type { Operation } from './domain/operation.js';
import { Journal } from './journal.js';

export interface AskedCall {
  readonly operation: Operation;
  /** The hash of what the worker prepared: the decision is about that too. */
  readonly preparedDigest?: string | undefined;
  readonly ask:
    | ({ readonly kind: 'asks'; /** A sign-in to the tool's server. */ readonly signIn?: boolean } & Asks)
    | ({ readonly kind: 'asks-question' } & AsksQuestion);
}

type Request = Input<typeof sessionService.requestInteractions>['requests'][number];

/** Has people asked: one request for all calls of a batch that need a decision. */
@Injectable()
export class Asking {
  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(Journal) private readonly journal: Journal,
  ) {}

  /** What is known of each asked call: nothing while its decision is pending, the outcome where it was approved and has run, a refusal where nobody can be asked. */
  async ask(
    { held, snapshot, step, edge }: BatchStart,
    asks: readonly AskedCall[],
    firstOrder: number,
  ): Promise<ReadonlyMap<string, CallEnd>> {
    const requests = asks.map(({ operation, ask, preparedDigest }, index): Request => {
      const tool = snapshot.tools.get(operation.call.name);
      const input = readArguments(operation.call.arguments);
      const isQuestion = ask.kind === 'asks-question';
      return {
        kind: isQuestion ? 'question' : ask.signIn === true ? 'authorize' : tool?.access === 'delegation' ? 'delegation' : 'permission',
        callId: operation.call.callId,
        operationId: operation.operationId,
        tool: operation.call.name,
        argumentsPreview: previewArguments(input).text,
        argumentsHash: argumentsHash(input),
        question: isQuestion ? ask.question : null,
        rule: isQuestion ? null : ask.rule,
        approvers: isQuestion ? [] : [...ask.approvers],
        notRequester: !isQuestion && ask.terms.some((term) => term.not === 'requester'),
        order: firstOrder + index,
        expiresMs: isQuestion ? INTERACTION_MS : ask.expiresMs,
        target: tool === undefined ? null : approvedTarget(tool.target, preparedDigest),
        ...(edge === undefined ? {} : { arguments: operation.call.arguments }),
      };
    });
    try {
      const { interactions } = await this.bus.call(sessionService.requestInteractions, { runId: held.authority.runId, step, requests });
      const ended = interactions.filter(({ status }) => status === 'settled' || status === 'allowed');
      const operations = new Map(asks.map(({ operation }) => [operation.operationId, operation]));
      const known = await Promise.all(
        ended.map(async ({ operationId }): Promise<[string, CallEnd | undefined]> => [
          operationId,
          await this.#outcome(operations.get(operationId)),
        ]),
      );
      return new Map(known.filter((entry): entry is [string, CallEnd] => entry[1] !== undefined));
    } catch (error) {
      if (!(error instanceof Fault) || (error.code !== 'APPROVAL_CAPACITY' && error.code !== 'TURN_ENDED')) throw error;
      const gate = error.code === 'TURN_ENDED' ? 'run-live' : 'permission';
      const end: CallEnd = {
        kind: 'refused',
        fault: faultBody(error.code, error.data, error.message),
        gate,
        detail: undefined,
        rule: null,
      };
      return new Map(asks.map(({ operation }) => [operation.operationId, end]));
    }
  }

  async #outcome(operation: Operation | undefined): Promise<CallEnd | undefined> {
    if (operation === undefined) return undefined;
    const outcome = await this.journal.readOutcome(operation.originRunId, operation.operationId);
    return outcome === undefined ? undefined : { kind: 'outcome', outcome };
  }
}

function readArguments(text: string): Record<string, unknown> {
  try {
    const value = parseArguments(text);
    return isObject(value) ? value : {};
  } catch (error) {
    if (error instanceof BadArguments) return {};
    throw error;
  }
}
