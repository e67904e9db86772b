import { appendAudit, DB, type BrokerDb, type Prisma } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';
import type { Audit } from '../server.repository.js';
import type { StoredToken } from './credential.repository.js';

const OWNER = 'mcp-broker';
export type FlowRow = Prisma.BrokerFlowGetPayload<object>;
export type ClientRow = Prisma.BrokerClientGetPayload<object>;

/** Where sign-ins under way stand, and the clients that we registered for them. */
@Injectable()
export class FlowRepository {
  constructor(@Inject(DB) private readonly db: BrokerDb) {}

  /** Begins a sign-in; one that is under way for the same subject ends with it. */
  begin(flow: FlowRow, audit: Audit): Promise<void> {
    return this.db.$transaction(async (transaction) => {
      const { serverId, subject, ...data } = flow;
      // What nobody answered in time goes with the next one: flows are bounded by their subjects, and live ten minutes.
      await transaction.brokerFlow.deleteMany({ where: { expiresAt: { lt: new Date() } } });
      await transaction.brokerFlow.upsert({ where: { serverId_subject: { serverId, subject } }, create: flow, update: data });
      await appendAudit(transaction, OWNER, { ...audit, at: new Date().toISOString() });
    });
  }

  /** A sign-in that waits for its answer. */
  waiting(stateHash: string, now: Date): Promise<FlowRow | null> {
    return this.db.brokerFlow.findFirst({ where: { stateHash, usedAt: null, expiresAt: { gt: now } } });
  }

  /** Takes a sign-in's answer: once, whoever else brings it. */
  async take(stateHash: string, now: Date): Promise<FlowRow | undefined> {
    const [flow] = await this.db.brokerFlow.updateManyAndReturn({
      where: { stateHash, usedAt: null, expiresAt: { gt: now } },
      data: { usedAt: now },
    });
    return flow;
  }

  /** Stores what a sign-in gave. False where it was cancelled meanwhile, or the server is another one by now. */
  complete(flow: FlowRow, token: StoredToken, audit: Audit): Promise<boolean> {
    const { serverId, subject, generation, bindingHash, stateHash } = flow;
    return this.db.$transaction(async (transaction) => {
      const ended = await transaction.brokerFlow.deleteMany({ where: { stateHash } });
      const server = await transaction.brokerServer.count({ where: { id: serverId, configGeneration: generation, bindingHash } });
      if (ended.count === 0 || server === 0) return false;
      const now = new Date();
      const data = {
        ...token,
        generation,
        bindingHash,
        state: 'authenticated',
        reason: null,
        wantedScope: null,
        leaseHolder: null,
        leaseUntil: null,
        updatedAt: now,
      };
      await transaction.brokerCredential.upsert({
        where: { serverId_subject: { serverId, subject } },
        create: { serverId, subject, ...data, version: 1 },
        update: { ...data, version: { increment: 1 } },
      });
      await appendAudit(transaction, OWNER, { ...audit, at: now.toISOString() });
      return true;
    });
  }

  /** Ends a sign-in that failed. A token that stands and works is left as it is. */
  fail(
    flow: FlowRow,
    failure: { readonly reason: string; readonly issuer: string; readonly resource: string },
    audit: Audit,
  ): Promise<void> {
    const { serverId, subject, generation, bindingHash, stateHash } = flow;
    return this.db.$transaction(async (transaction) => {
      const { count } = await transaction.brokerFlow.deleteMany({ where: { stateHash } });
      if (count === 0) return;
      const data = { ...failure, generation, bindingHash, state: 'error', updatedAt: new Date() };
      await transaction.brokerCredential.createMany({ data: [{ serverId, subject, ...data, version: 1 }], skipDuplicates: true });
      await transaction.brokerCredential.updateMany({ where: { serverId, subject, NOT: { state: 'authenticated' } }, data });
      await appendAudit(transaction, OWNER, { ...audit, at: new Date().toISOString() });
    });
  }

  client(serverId: string, issuer: string, redirect: string): Promise<ClientRow | null> {
    return this.db.brokerClient.findUnique({ where: { serverId_issuer_redirect: { serverId, issuer, redirect } } });
  }

  async keepClient(client: ClientRow): Promise<void> {
    const { serverId, issuer, redirect, ...data } = client;
    await this.db.brokerClient.upsert({
      where: { serverId_issuer_redirect: { serverId, issuer, redirect } },
      create: client,
      update: data,
    });
  }

  /** An issuer does not know us any more: we register again. */
  async forgetClient(serverId: string, issuer: string): Promise<void> {
    await this.db.brokerClient.deleteMany({ where: { serverId, issuer } });
  }
}
