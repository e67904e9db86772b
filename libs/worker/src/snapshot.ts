import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { z } from 'zod';

/** What a worker reads of a snapshot. Lenient: fields it does not know are kept and ignored. */
const SnapshotTool = z.looseObject({
  name: z.string(),
  description: z.string(),
  inputSchema: z.record(z.string(), z.unknown()),
  effect: z.enum(['read', 'write']),
});
const SnapshotSkill = z.looseObject({ name: z.string(), description: z.string(), digest: z.string() });
export const SnapshotView = z.looseObject({
  schemaVersion: z.int(),
  agentId: z.string(),
  tools: z.array(SnapshotTool),
  skills: z.array(SnapshotSkill),
});
export type SnapshotView = z.output<typeof SnapshotView>;

/** Unzips a snapshot's parts, bounded by `bytes`, and refuses what does not hash to the fingerprint the run was given. */
export function openSnapshot(parts: readonly Uint8Array[], bytes: number, fingerprint: string): SnapshotView {
  const canonical = gunzipSync(Buffer.concat(parts), { maxOutputLength: bytes });
  const actual = createHash('sha256').update(canonical).digest('hex');
  if (actual !== fingerprint) throw new Error(`not the snapshot this run was given: expected ${fingerprint}, got ${actual}`);
  return SnapshotView.parse(JSON.parse(canonical.toString('utf8')));
}
