import { createHash } from 'node:crypto';
import { AUDIT_TOGETHER, auditEvent, AuditRecord, eventMessage, type Principal, type StoredMessage } from '@ambit/contracts';
import { canonicalJson } from './canonical-json.js';
import { addToOutbox, type OutboxId } from './outbox.js';
import type { RawSql } from './raw-sql.js';
import { schemaOf } from './schema-name.js';

/** What an owner says of one act; the chain's fields are added here. */
export type AuditEntry = Omit<AuditRecord, 'schemaVersion' | 'owner' | 'sequence' | 'previousHash' | 'hash'>;

const FIRST = '0'.repeat(64);
/** UTF-16 units of records in one event: a third of a message's bytes, each unit being three at most. */
const TOGETHER_UNITS = 160 * 1024;

/** Appends a record to the owner's chain and tells it by the outbox. Serialises the owner's audited writes until commit: append last. */
export function appendAudit(transaction: RawSql, owner: string, entry: AuditEntry): Promise<OutboxId[]> {
  return appendAudits(transaction, owner, [entry]);
}

/** Appends several records at the cost of one, in their order; see {@link appendAudit}. */
export async function appendAudits(transaction: RawSql, owner: string, entries: readonly AuditEntry[]): Promise<OutboxId[]> {
  if (entries.length === 0) return [];
  const schema = schemaOf(owner);
  await transaction.$executeRawUnsafe(`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, `ambit.audit.${schema}`);
  const [last] = await transaction.$queryRawUnsafe<{ sequence: bigint; hash: string }[]>(
    `SELECT "sequence", "hash" FROM "${schema}"."audit" ORDER BY "sequence" DESC LIMIT 1`,
  );
  const rows: { record: AuditRecord; text: string }[] = [];
  for (const entry of entries) {
    const previous = rows.at(-1)?.record ?? { sequence: Number(last?.sequence ?? 0n), hash: last?.hash ?? FIRST };
    const unsigned = {
      ...entry,
      actor: nameless(entry.actor),
      principal: nameless(entry.principal),
      schemaVersion: 1 as const,
      owner,
      sequence: previous.sequence + 1,
      previousHash: previous.hash,
    };
    const text = canonicalJson(unsigned);
    rows.push({ record: { ...unsigned, hash: link(unsigned.previousHash, text) }, text });
  }
  await transaction.$executeRawUnsafe(
    `INSERT INTO "${schema}"."audit" ("sequence", "at", "record", "previous_hash", "hash")
     SELECT r."sequence", r."at", r."text", r."previousHash", r."hash"
     FROM json_to_recordset($1::json) AS r("sequence" bigint, "at" timestamptz, "text" text, "previousHash" text, "hash" text)`,
    JSON.stringify(rows.map(({ record: { sequence, at, previousHash, hash }, text }) => ({ sequence, at, text, previousHash, hash }))),
  );
  return addToOutbox(
    transaction,
    owner,
    together(rows).map((records) => toldOf(owner, records)),
  );
}

/** Cuts records into as few events as their size allows. */
function together(rows: readonly { readonly record: AuditRecord; readonly text: string }[]): [AuditRecord, ...AuditRecord[]][] {
  const parts: [AuditRecord, ...AuditRecord[]][] = [];
  let units = 0;
  for (const { record, text } of rows) {
    const part = parts.at(-1);
    units += text.length;
    if (part !== undefined && part.length < AUDIT_TOGETHER && units <= TOGETHER_UNITS) {
      part.push(record);
      continue;
    }
    parts.push([record]);
    units = text.length;
  }
  return parts;
}

/** The contract's own check of the records is the only one. */
function toldOf(owner: string, records: readonly [AuditRecord, ...AuditRecord[]]): StoredMessage {
  const last = records[records.length - 1] ?? records[0];
  return eventMessage(auditEvent(owner), { schemaVersion: 1, records: [...records] }, { keys: {}, id: last.hash, time: new Date(last.at) });
}

/** The chain keeps ids and no names: a person can be erased, and not one hash changes. */
function nameless(principal: Principal | null): Principal | null {
  return principal === null ? null : { ...principal, display: '' };
}

/** Reads an owner's own chain, for whoever missed what was told of it. */
export class AuditTrail {
  constructor(
    private readonly database: RawSql,
    private readonly owner: string,
  ) {}

  /** The records behind a sequence, in order. */
  async after(sequence: number, limit: number): Promise<AuditRecord[]> {
    const rows = await this.database.$queryRawUnsafe<{ record: string; hash: string }[]>(
      `SELECT "record", "hash" FROM "${schemaOf(this.owner)}"."audit" WHERE "sequence" > $1 ORDER BY "sequence" LIMIT $2`,
      sequence,
      limit,
    );
    return rows.map(({ record, hash }) => AuditRecord.parse({ ...JSON.parse(record), hash }));
  }
}

/** What a walk along an owner's chain found. */
export type AuditVerdict =
  { readonly isIntact: true; readonly records: number } | { readonly isIntact: false; readonly brokenAt: number; readonly problem: string };

const PAGE = 500;

/** Walks the owner's chain from its oldest kept record and names the first that does not fit. */
export async function verifyAudit(database: RawSql, owner: string): Promise<AuditVerdict> {
  const schema = schemaOf(owner);
  let previous: { sequence: number; hash: string } | undefined;
  for (let records = 0; ;) {
    const page = await database.$queryRawUnsafe<{ sequence: bigint; record: string; previous_hash: string; hash: string }[]>(
      `SELECT "sequence", "record", "previous_hash", "hash" FROM "${schema}"."audit" WHERE "sequence" > $1 ORDER BY "sequence" LIMIT ${PAGE}`,
      previous?.sequence ?? 0,
    );
    for (const row of page) {
      const sequence = Number(row.sequence);
      const problem = problemOf({ ...row, sequence }, previous);
      if (problem !== undefined) return { isIntact: false, brokenAt: sequence, problem };
      previous = { sequence, hash: row.hash };
      records++;
    }
    if (page.length < PAGE) return { isIntact: true, records };
  }
}

function problemOf(
  row: { sequence: number; record: string; previous_hash: string; hash: string },
  previous: { sequence: number; hash: string } | undefined,
): string | undefined {
  if (previous !== undefined && row.sequence !== previous.sequence + 1) return `record ${previous.sequence + 1} is missing`;
  if (previous !== undefined && row.previous_hash !== previous.hash) return 'it does not follow the record before it';
  return link(row.previous_hash, row.record) === row.hash ? undefined : 'its content is not what was hashed';
}

function link(previousHash: string, text: string): string {
  return createHash('sha256').update(previousHash).update(text).digest('hex');
}
