import { eventMessage, mcpBroker, type ServerSpec, type ToolDefinition } from '@ambit/contracts';
import { addToOutbox, appendAudit, appendAudits, DB, type AuditEntry, type BrokerDb, type Prisma } from '@ambit/db';
import type { RefusedName } from '@ambit/capability';
import { catalogueHash } from '@ambit/mcp';
import { Inject, Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { auditOf } from './audit.js';
import type { PutDecision, ServerBefore } from './domain/put-server.js';
import { changeOf, heldToolsOf, refusedNamesOf, specOf, type ServerRow, type Status } from './server.view.js';
import { partTools, showTools } from './shown-tools.js';

const OWNER = 'mcp-broker';
/** A server's own list is nobody's request. */
const NOBODY = { actor: undefined, principal: undefined, via: { kind: 'system', id: OWNER }, traceId: '' } as const;
/** Nothing is held back, and nothing was accepted: the next list is the first. */
const NOTHING_HELD = { acceptedTools: '{}', heldTools: '[]' };
type Transaction = Prisma.TransactionClient;
export type Audit = Omit<AuditEntry, 'at'>;

/** What others must be told of after the commit. */
export interface Moved {
  readonly owner: string;
  readonly epoch: number;
  readonly fence: number;
}
export interface Put {
  readonly spec: ServerSpec;
  readonly at: Date;
  /** The id of a server that is new. */
  readonly newId: string;
  readonly audit: Omit<Audit, 'beforeDigest' | 'afterDigest' | 'target'>;
  readonly digest: (row: ServerRow | undefined) => string | null;
}
export interface Where {
  readonly projectId?: string | undefined;
  readonly owner?: string | undefined;
  readonly set?: string | undefined;
}
/** That an instance is being started. */
interface InstanceStart {
  readonly instanceId: string;
  readonly serverId: string;
  readonly generation: number;
  /** Whose credentials it carries. */
  readonly subject: string;
  readonly startedAt: Date;
}

/** Where servers, their catalogues and their instances stand. Each change moves the owner's epoch and tells of itself by the outbox. */
@Injectable()
export class ServerRepository {
  constructor(@Inject(DB) private readonly db: BrokerDb) {}

  find(by: { readonly id: string } | { readonly projectId: string; readonly slug: string }): Promise<ServerRow | null> {
    return 'id' in by
      ? this.db.brokerServer.findUnique({ where: { id: by.id } })
      : this.db.brokerServer.findUnique({ where: { projectId_slug: { projectId: by.projectId, slug: by.slug } } });
  }

  byIds(ids: readonly string[]): Promise<ServerRow[]> {
    return this.db.brokerServer.findMany({ where: { id: { in: [...ids] } } });
  }

  list(where: Where, page: { readonly after?: string | undefined; readonly limit: number }): Promise<ServerRow[]> {
    const { projectId, owner, set } = where;
    return this.db.brokerServer.findMany({
      where: {
        ...(projectId === undefined ? {} : { projectId }),
        ...(owner === undefined ? {} : { owner }),
        ...(set === undefined ? {} : { set }),
        ...(page.after === undefined ? {} : { id: { gt: page.after } }),
      },
      orderBy: { id: 'asc' },
      take: page.limit,
    });
  }

  /** Stores what `decide` makes of the row as it stands in the transaction. */
  put(
    put: Put,
    decide: (before: ServerBefore | undefined, secrets: ReadonlySet<string>) => PutDecision,
  ): Promise<{ readonly row: ServerRow; readonly decision: PutDecision; readonly moved: Moved }> {
    const { spec, at } = put;
    return this.db.$transaction(async (transaction) => {
      // One writer for each (project, slug), also while there is no row to lock.
      await transaction.$executeRawUnsafe(
        'SELECT pg_advisory_xact_lock(hashtextextended($1, 0))',
        `ambit.server.${spec.projectId}.${spec.slug}`,
      );
      const key = { projectId: spec.projectId, slug: spec.slug };
      const found = await transaction.brokerServer.findUnique({ where: { projectId_slug: key } });
      const secrets = await transaction.brokerSecret.findMany({ where: { projectId: spec.projectId }, select: { name: true } });
      const before = found === null ? undefined : { spec: specOf(found), configGeneration: found.configGeneration, version: found.version };
      const decision = decide(before, new Set(secrets.map(({ name }) => name)));
      // What a plugin brings back was switched off by a person while it was there before.
      const wasOff = found === null && (await transaction.brokerSwitchedOff.deleteMany({ where: { ...key, owner: spec.owner } })).count > 0;
      const switchedOff = found?.switchedOff ?? wasOff;
      const isOther = found !== null && found.configGeneration !== decision.configGeneration;
      const data = {
        owner: spec.owner,
        set: spec.set,
        enabled: spec.enabled && !switchedOff,
        switchedOff,
        spec: JSON.stringify(spec),
        configGeneration: decision.configGeneration,
        bindingHash: decision.bindingHash,
        version: decision.version,
        updatedAt: at,
        ...(isOther || found?.enabled === false ? { state: 'idle', reason: null } : {}),
        ...(isOther ? { runsAs: null, protocol: null, packaged: null, ...NOTHING_HELD } : spec.holdChanges ? {} : NOTHING_HELD),
      };
      // Where nothing is held back any more, all of it is as the server said last.
      const released = found === null || isOther || spec.holdChanges ? [] : heldToolsOf(found).map(({ after }) => after);
      const list = found === null || released.length === 0 ? {} : await showTools(transaction, found, { tools: released, at });
      const row =
        found === null
          ? await transaction.brokerServer.create({ data: { ...key, ...data, id: put.newId, state: 'idle', createdAt: at } })
          : await transaction.brokerServer.update({ where: { id: found.id }, data: { ...data, ...list } });
      if (isOther) await forgetAuthorization(transaction, row.id);
      const moved = await tell(transaction, { rows: [row], at, owner: row.owner });
      await appendAudit(transaction, OWNER, {
        ...put.audit,
        at: at.toISOString(),
        target: `server:${row.id}`,
        beforeDigest: put.digest(found ?? undefined),
        afterDigest: put.digest(row),
      });
      return { row, decision, moved };
    });
  }

  /** Undefined where there is none. */
  switch(
    id: string,
    how: { readonly on: boolean; readonly at: Date },
    audit: Audit,
  ): Promise<{ readonly row: ServerRow; readonly moved: Moved } | undefined> {
    return this.db.$transaction(async (transaction) => {
      const before = await transaction.brokerServer.findUnique({ where: { id } });
      if (before === null) return undefined;
      const row = await transaction.brokerServer.update({
        where: { id },
        data: {
          switchedOff: !how.on,
          enabled: how.on && specOf(before).enabled,
          version: { increment: 1 },
          updatedAt: how.at,
          ...(how.on && before.switchedOff ? { state: 'idle', reason: null } : {}),
        },
      });
      const moved = await tell(transaction, { rows: [row], at: how.at, owner: row.owner });
      await appendAudit(transaction, OWNER, { ...audit, at: how.at.toISOString() });
      return { row, moved };
    });
  }

  /** Removes a server; gives what has to end. Undefined where there is none. */
  remove(
    id: string,
    at: Date,
    audit: Audit,
  ): Promise<{ readonly row: ServerRow; readonly instances: readonly string[]; readonly moved: Moved } | undefined> {
    return this.db.$transaction(async (transaction) => {
      const row = await transaction.brokerServer.findUnique({ where: { id }, include: { instances: true } });
      if (row === null) return undefined;
      await transaction.brokerServer.delete({ where: { id } });
      const moved = await tell(transaction, { rows: [{ ...row, enabled: false }], at, owner: row.owner });
      await appendAudit(transaction, OWNER, { ...audit, at: at.toISOString() });
      return { row, instances: row.instances.map(({ instanceId }) => instanceId), moved };
    });
  }

  /** Switches an owner's servers off, or removes them, and moves the fence to at least `fence`. */
  revoke(
    owner: string,
    how: { readonly fence: number; readonly remove: boolean; readonly at: Date },
    audit: Audit,
  ): Promise<{ readonly rows: readonly ServerRow[]; readonly instances: readonly string[]; readonly moved: Moved }> {
    return this.db.$transaction(async (transaction) => {
      const rows = await transaction.brokerServer.findMany({ where: { owner }, include: { instances: true } });
      if (how.remove) {
        const off = rows.filter(({ switchedOff }) => switchedOff).map(({ projectId, slug }) => ({ projectId, slug, owner }));
        await transaction.brokerSwitchedOff.createMany({ data: off, skipDuplicates: true });
        await transaction.brokerServer.deleteMany({ where: { owner } });
      } else
        for (const row of rows)
          await transaction.brokerServer.update({
            where: { id: row.id },
            data: { enabled: false, spec: JSON.stringify({ ...specOf(row), enabled: false }), version: row.version + 1, updatedAt: how.at },
          });
      await transaction.$executeRawUnsafe(
        'INSERT INTO "mcp_broker"."owner" ("owner", "epoch", "fence") VALUES ($1, 0, $2) ON CONFLICT ("owner") DO UPDATE SET "fence" = GREATEST("owner"."fence", $2)',
        owner,
        how.fence,
      );
      const moved = await tell(transaction, { rows: rows.map((row) => ({ ...row, enabled: false })), at: how.at, owner });
      await appendAudit(transaction, OWNER, { ...audit, at: how.at.toISOString() });
      return { rows, instances: rows.flatMap((row) => row.instances.map(({ instanceId }) => instanceId)), moved };
    });
  }

  /** Writes what is known of a server now, for the generation it was seen of. Undefined where nothing changed. */
  status(
    id: string,
    generation: number,
    status: Status & { readonly at: Date; readonly era?: Prisma.InputJsonValue | undefined },
  ): Promise<Moved | undefined> {
    const { at, era, ...facts } = status;
    return this.db.$transaction(async (transaction) => {
      const row = await transaction.brokerServer.findUnique({ where: { id } });
      if (row === null || row.configGeneration !== generation) return undefined;
      const isSame =
        row.state === facts.state && row.reason === facts.reason && row.runsAs === facts.runsAs && row.protocol === facts.protocol;
      if (era !== undefined) await transaction.brokerServer.update({ where: { id }, data: { era } });
      if (isSame) return undefined;
      return tell(transaction, { rows: [await transaction.brokerServer.update({ where: { id }, data: facts })], at, owner: row.owner });
    });
  }

  /** Stores a list read whole. Undefined where it is the one that stands already, or the server has become another. */
  saveCatalogue(
    id: string,
    generation: number,
    catalogue: {
      readonly subject: string;
      readonly hash: string;
      readonly tools: readonly ToolDefinition[];
      readonly refused: readonly RefusedName[];
      readonly from: 'server' | 'package';
      readonly at: Date;
    },
  ): Promise<{ readonly moved: Moved; readonly newlyRefused: number } | undefined> {
    const { subject, refused, from, at } = catalogue;
    const key = { serverId: id, subject };
    return this.db.$transaction(async (transaction) => {
      const row = await transaction.brokerServer.findUnique({ where: { id } });
      if (row === null || row.configGeneration !== generation) return undefined;
      // What the server itself said is better than what its package says.
      if (from === 'package' && row.catalogOf === generation && row.packaged !== 'listed') return undefined;
      const packaged = from === 'package' ? 'listed' : row.packaged === null ? null : 'replaced';
      const before = await transaction.brokerCatalogue.findUnique({
        where: { serverId_subject: key },
        select: { catalogHash: true, generation: true, tools: true },
      });
      const holding = subject === 'shared' && specOf(row).holdChanges ? partTools(row, before, catalogue.tools) : undefined;
      const tools = holding?.shown ?? catalogue.tools;
      const hash = holding === undefined ? catalogue.hash : catalogueHash(tools);
      const isKnown =
        subject === 'shared'
          ? row.catalogHash === hash &&
            row.catalogOf === generation &&
            row.packaged === packaged &&
            (holding === undefined || (holding.heldTools === row.heldTools && holding.acceptedTools === row.acceptedTools))
          : before?.catalogHash === hash && before.generation === generation;
      if (isKnown) return undefined;
      const data = { catalogHash: hash, generation, tools: JSON.stringify(tools), readAt: at };
      await transaction.brokerCatalogue.upsert({ where: { serverId_subject: key }, create: { ...key, ...data }, update: data });
      // A list that is one subject's own is told of, so that its next run reads it; the server's own stays what it is.
      if (subject !== 'shared') return { moved: await tell(transaction, { rows: [row], at, owner: row.owner }), newlyRefused: 0 };
      const known = new Set(row.catalogOf === generation ? refusedNamesOf(row).map(({ tool, name }) => `${tool}\n${name}`) : []);
      const fresh = refused.filter(({ tool, name }) => !known.has(`${tool}\n${name}`));
      const listed = {
        catalogHash: hash,
        catalogOf: generation,
        tools: tools.length,
        refusedNames: JSON.stringify(refused),
        packaged,
        ...holding?.stored,
      };
      const changed = await transaction.brokerServer.update({ where: { id }, data: listed });
      const moved = await tell(transaction, { rows: [changed], at, owner: row.owner });
      await appendAudits(
        transaction,
        OWNER,
        fresh.map(({ tool, reason }) => ({
          ...auditOf(NOBODY, { action: 'name.refused', target: `server:${id}/${tool}`, projectId: row.projectId, reason }),
          at: at.toISOString(),
        })),
      );
      return { moved, newlyRefused: fresh.length };
    });
  }

  /** The JSON of a server's tools of this hash, whoever they were read for; null where no last good list has it. */
  catalogue(id: string, catalogHash: string): Promise<{ readonly catalogHash: string; readonly tools: string } | null> {
    return this.db.brokerCatalogue.findFirst({ where: { serverId: id, catalogHash }, select: { catalogHash: true, tools: true } });
  }
  /** Hashes of the lists that were read with these subjects' own credentials. */
  async ownCatalogues(
    serverIds: readonly string[],
    subjects: readonly string[],
  ): Promise<{ readonly serverId: string; readonly subject: string; readonly generation: number; readonly catalogHash: string }[]> {
    if (serverIds.length === 0 || subjects.length === 0) return [];
    return this.db.brokerCatalogue.findMany({
      where: { serverId: { in: [...serverIds] }, subject: { in: [...subjects] } },
      select: { serverId: true, subject: true, generation: true, catalogHash: true },
    });
  }

  /** Remembers a start, unless one of this instance is remembered; says whether it was new. */
  async rememberStart({ instanceId, ...start }: InstanceStart): Promise<boolean> {
    const { count } = await this.db.brokerInstance.createMany({ data: [{ instanceId, ...start }], skipDuplicates: true });
    return count === 1;
  }
  /** Puts a start in the place of an earlier one of the same instance. */
  async rememberRestart({ instanceId, ...start }: InstanceStart): Promise<void> {
    await this.db.brokerInstance.upsert({ where: { instanceId }, create: { instanceId, ...start }, update: start });
  }
  /** Forgets a start, unless another one of this instance took its place. */
  async forgetStart({ instanceId, startedAt }: InstanceStart): Promise<void> {
    await this.db.brokerInstance.deleteMany({ where: { instanceId, startedAt } });
  }
  async forgetInstances(instanceIds: readonly string[]): Promise<void> {
    await this.db.brokerInstance.deleteMany({ where: { instanceId: { in: [...instanceIds] } } });
  }
  /** Other instances of a server that were started, with when. */
  async othersOf(serverId: string, instanceId: string): Promise<{ readonly instanceId: string; readonly startedAt: Date }[]> {
    return this.db.brokerInstance.findMany({
      where: { serverId, instanceId: { not: instanceId } },
      select: { instanceId: true, startedAt: true },
    });
  }
  /** Servers of which something runs with this subject's credentials. */
  async serversOf(subject: string): Promise<string[]> {
    const rows = await this.db.brokerInstance.findMany({ where: { subject }, select: { serverId: true }, distinct: ['serverId'] });
    return rows.map(({ serverId }) => serverId);
  }
  async instancesWith(serverId: string, subject: string): Promise<string[]> {
    return (await this.db.brokerInstance.findMany({ where: { serverId, subject } })).map(({ instanceId }) => instanceId);
  }
  async instancesOf(serverId: string, keepGeneration: number | null): Promise<string[]> {
    const rows = await this.db.brokerInstance.findMany({
      where: { serverId, ...(keepGeneration === null ? {} : { generation: { not: keepGeneration } }) },
    });
    return rows.map(({ instanceId }) => instanceId);
  }

  /** Servers that are switched on, each with one instance that was started of it as it is now. */
  async running(limit: number): Promise<{ readonly row: ServerRow; readonly instanceId: string }[]> {
    const rows = await this.db.brokerServer.findMany({
      where: { enabled: true },
      include: { instances: true },
      orderBy: { id: 'asc' },
      take: limit,
    });
    return rows.flatMap(({ instances, ...row }) => {
      const instance = instances.find(({ generation }) => generation === row.configGeneration);
      return instance === undefined ? [] : [{ row, instanceId: instance.instanceId }];
    });
  }

  /** Servers to read a first list of: switched on, and never listed as what they are now. */
  async unlisted(limit: number): Promise<ServerRow[]> {
    const rows = await this.db.brokerServer.findMany({ where: { enabled: true }, orderBy: { id: 'asc' }, take: limit });
    return rows.filter((row) => row.catalogOf !== row.configGeneration);
  }

  async owners(): Promise<Moved[]> {
    const rows = await this.db.brokerOwner.findMany();
    return rows.map(({ owner, epoch, fence }) => ({ owner, epoch: Number(epoch), fence: Number(fence) }));
  }
}

/** Credentials were given for the server as it was: of another one nothing of them is kept. */
async function forgetAuthorization(transaction: Transaction, serverId: string): Promise<void> {
  await transaction.brokerFlow.deleteMany({ where: { serverId } });
  await transaction.brokerCredential.deleteMany({ where: { serverId } });
  await transaction.brokerClient.deleteMany({ where: { serverId } });
  await transaction.brokerChallenge.deleteMany({ where: { serverId } });
  await transaction.brokerCatalogue.deleteMany({ where: { serverId, NOT: { subject: 'shared' } } });
}

/** Moves the owner's epoch and puts one event for each row into the outbox. */
export async function tell(
  transaction: Transaction,
  change: { readonly rows: readonly ServerRow[]; readonly at: Date; readonly owner: string },
): Promise<Moved> {
  const { rows, at, owner } = change;
  const [moved] = await transaction.$queryRawUnsafe<{ epoch: bigint; fence: bigint }[]>(
    'INSERT INTO "mcp_broker"."owner" ("owner", "epoch") VALUES ($1, $2) ON CONFLICT ("owner") DO UPDATE SET "epoch" = GREATEST("owner"."epoch" + 1, $2) RETURNING "epoch", "fence"',
    owner,
    at.getTime(),
  );
  const epoch = Number(moved?.epoch ?? at.getTime());
  await addToOutbox(
    transaction,
    OWNER,
    rows.map((row) =>
      eventMessage(mcpBroker.catalogueChanged, changeOf(row, epoch, at), { keys: { serverId: row.id }, id: randomUUID(), time: at }),
    ),
  );
  return { owner, epoch, fence: Number(moved?.fence ?? 0) };
}
