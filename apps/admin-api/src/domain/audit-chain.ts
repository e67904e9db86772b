import { canonicalJson, sha256Hex } from '@ambit/capability';
import type { AuditRecord } from '@ambit/contracts';

/** What is wrong with a record that follows `previous`, or undefined. The oldest kept record may follow one that was swept. */
export function chainProblem(record: AuditRecord, previous: Pick<AuditRecord, 'sequence' | 'hash'> | undefined): string | undefined {
  if (previous !== undefined && record.sequence !== previous.sequence + 1) return `record ${previous.sequence + 1} is missing`;
  if (previous !== undefined && record.previousHash !== previous.hash) return `record ${record.sequence} does not follow the one before it`;
  const { hash, ...unsigned } = record;
  return sha256Hex(record.previousHash + canonicalJson(unsigned)) === hash
    ? undefined
    : `the content of record ${record.sequence} is not what was hashed`;
}
