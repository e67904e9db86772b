import { appendAudit, DB, type BrokerDb, type Prisma } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';
import type { Audit } from '../server.repository.js';

const OWNER = 'mcp-broker';
export type CredentialRow = Prisma.BrokerCredentialGetPayload<object>;
export type ChallengeRow = Prisma.BrokerChallengeGetPayload<object>;
export interface Key {
  readonly serverId: string;
  readonly subject: string;
}
/** A new token as it is stored. */
export type StoredToken = Pick<
  CredentialRow,
  'resource' | 'issuer' | 'scope' | 'sealed' | 'keyId' | 'obtainedAt' | 'refreshAt' | 'expiresAt'
>;
/** Who may put a new token in the place of this version. */
export interface Lease extends Key {
  readonly version: number;
  readonly holder: string;
}

const OVER = { leaseHolder: null, leaseUntil: null } as const;

/** Where tokens stand, sealed. Of all replicas one renews a token: who holds its lease. */
@Injectable()
export class CredentialRepository {
  constructor(@Inject(DB) private readonly db: BrokerDb) {}

  find({ serverId, subject }: Key): Promise<CredentialRow | null> {
    return this.db.brokerCredential.findUnique({ where: { serverId_subject: { serverId, subject } } });
  }

  list(serverId: string, page: { readonly after?: string | undefined; readonly limit: number }): Promise<CredentialRow[]> {
    return this.db.brokerCredential.findMany({
      where: { serverId, ...(page.after === undefined ? {} : { subject: { gt: page.after } }) },
      orderBy: { subject: 'asc' },
      take: page.limit,
    });
  }

  challenge(serverId: string): Promise<ChallengeRow | null> {
    return this.db.brokerChallenge.findUnique({ where: { serverId } });
  }

  /** What the states of several servers are read off. */
  async facts(serverIds: readonly string[], now: Date) {
    const where = { serverId: { in: [...serverIds] } };
    const [challenges, shared, flows, authenticated] = await Promise.all([
      this.db.brokerChallenge.findMany({ where }),
      this.db.brokerCredential.findMany({ where: { ...where, subject: 'shared' } }),
      this.db.brokerFlow.findMany({
        where: { ...where, expiresAt: { gt: now } },
        select: { serverId: true, subject: true, generation: true },
      }),
      this.db.brokerCredential.groupBy({ by: ['serverId', 'generation'], where: { ...where, state: 'authenticated' }, _count: true }),
    ]);
    return { challenges, shared, flows, authenticated };
  }

  /** Whether sign-ins of these subjects are under way. */
  async signingIn(serverId: string, now: Date): Promise<ReadonlySet<string>> {
    const rows = await this.db.brokerFlow.findMany({ where: { serverId, expiresAt: { gt: now } }, select: { subject: true }, take: 1_000 });
    return new Set(rows.map(({ subject }) => subject));
  }

  async putChallenge(row: ChallengeRow): Promise<void> {
    const { serverId, ...data } = row;
    // The server may be gone by now.
    if ((await this.db.brokerServer.count({ where: { id: serverId } })) === 0) return;
    await this.db.brokerChallenge.upsert({ where: { serverId }, create: row, update: data });
  }

  /** Makes room for a subject's first token, so that it can be leased. */
  async prepare(
    row: Omit<CredentialRow, 'sealed' | 'keyId' | 'obtainedAt' | 'refreshAt' | 'expiresAt' | 'leaseHolder' | 'leaseUntil'>,
  ): Promise<void> {
    await this.db.brokerCredential.createMany({ data: [row], skipDuplicates: true });
  }

  /** Takes the lease of a version; false where another holds it, or the token is another by now. */
  async lease({ holder, ...key }: Lease, now: Date, untilMs: number): Promise<boolean> {
    const { count } = await this.db.brokerCredential.updateMany({
      where: { ...key, OR: [{ leaseUntil: null }, { leaseUntil: { lt: now } }] },
      data: { leaseHolder: holder, leaseUntil: new Date(now.getTime() + untilMs) },
    });
    return count === 1;
  }

  /** Puts a new token in the place of the leased one. False where the lease was lost. */
  async renewed(
    { holder, ...key }: Lease,
    token: StoredToken & { readonly generation: number; readonly bindingHash: string },
    now: Date,
  ): Promise<boolean> {
    const { count } = await this.db.brokerCredential.updateMany({
      where: { ...key, leaseHolder: holder },
      data: { ...token, ...OVER, state: 'authenticated', reason: null, wantedScope: null, version: { increment: 1 }, updatedAt: now },
    });
    return count === 1;
  }

  async giveBack(
    { holder, ...key }: Lease,
    problem: { readonly state: string; readonly reason: string } | undefined,
    now: Date,
  ): Promise<void> {
    await this.db.brokerCredential.updateMany({
      where: { ...key, leaseHolder: holder },
      data: { ...OVER, ...(problem === undefined ? {} : { ...problem, updatedAt: now }) },
    });
  }

  /** The tokens of this version are good for nothing any more: they go, and the reason stays. */
  async spend({ serverId, subject, version }: Key & { readonly version: number }, reason: string, now: Date): Promise<void> {
    await this.db.brokerCredential.updateMany({
      where: { serverId, subject, version },
      data: {
        ...OVER,
        state: 'required',
        reason,
        sealed: null,
        keyId: null,
        refreshAt: null,
        expiresAt: null,
        version: { increment: 1 },
        updatedAt: now,
      },
    });
  }

  /** The server wants more than the token has: a person has to sign in once more, and what works until then goes on. */
  async want({ serverId, subject }: Key, wanted: { readonly scope: string; readonly reason: string }, now: Date): Promise<void> {
    await this.db.brokerCredential.updateMany({
      where: { serverId, subject },
      data: { wantedScope: wanted.scope, state: 'required', reason: wanted.reason, updatedAt: now },
    });
  }

  /** Forgets a subject's tokens and sign-ins, of one server or of all; gives whose servers they were. */
  remove(subject: string, serverId: string | undefined, audit: Audit): Promise<readonly string[]> {
    return this.db.$transaction(async (transaction) => {
      const where = { subject, ...(serverId === undefined ? {} : { serverId }) };
      const rows = await transaction.brokerCredential.findMany({ where, select: { serverId: true } });
      const { count } = await transaction.brokerFlow.deleteMany({ where });
      await transaction.brokerCredential.deleteMany({ where });
      await transaction.brokerCatalogue.deleteMany({ where: { ...where, NOT: { subject: 'shared' } } });
      if (rows.length + count > 0) await appendAudit(transaction, OWNER, { ...audit, at: new Date().toISOString() });
      return rows.map((row) => row.serverId);
    });
  }
}
