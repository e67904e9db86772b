import { z } from 'zod';
import { event, rpc, type EventContract, type Rpc } from './kit/contract.js';
import { Hex64, Instant, Principal, RetentionClass, Via } from './nouns.js';

/** One link of an owner's audit chain. `hash` = sha256 of the previous hash and the canonical JSON of the record without `hash`. */
export const AuditRecord = z
  .object({
    schemaVersion: z.literal(1),
    owner: z.string().max(63),
    sequence: z.int().min(1),
    at: Instant,
    actor: Principal.nullable(),
    principal: Principal.nullable(),
    via: Via.nullable(),
    projectId: z.string().max(63).nullable(),
    action: z.string().max(100),
    target: z.string().max(500),
    beforeDigest: Hex64.nullable(),
    afterDigest: Hex64.nullable(),
    rule: z.string().max(500).nullable(),
    reason: z.string().max(2_000).nullable(),
    traceId: z.string().max(64).nullable(),
    retention: RetentionClass,
    previousHash: Hex64,
    hash: Hex64,
  })
  .meta({ id: 'AuditRecord' });
export type AuditRecord = z.output<typeof AuditRecord>;

/** Records of one event at most: what is written together is told together, within the size of a message. */
export const AUDIT_TOGETHER = 100;
/** Records that joined an owner's chain together, in their order. */
export const AuditAppended = z.object({ schemaVersion: z.literal(1), records: z.array(AuditRecord).min(1).max(AUDIT_TOGETHER) });
export type AuditAppended = z.output<typeof AuditAppended>;

/** Every owner tells its audit records in the same shape. */
export const auditEvent = <const O extends string>(owner: O): EventContract<`ambit.evt.${O}.v1.audit.appended`, typeof AuditAppended> =>
  event(`ambit.evt.${owner}.v1.audit.appended`, { summary: 'Records joined this owner’s audit chain', payload: AuditAppended });

const AuditPage = { input: z.object({ after: z.int().min(0), limit: z.int().min(1).max(100).default(100) }), output: z.object({ items: z.array(AuditRecord) }) };

/** Whoever missed what an owner told reads its chain itself. */
export const auditReading = <const O extends string>(owner: O): Rpc<`ambit.rpc.${O}.v1.audit.list`, typeof AuditPage.input, typeof AuditPage.output, Record<never, never>> =>
  rpc(`ambit.rpc.${owner}.v1.audit.list`, { summary: 'This owner’s audit records behind a sequence, in order', ...AuditPage, errors: {}, idempotent: true });
