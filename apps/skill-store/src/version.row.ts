import type { Prisma } from '@ambit/db';
import type { Version } from './skill.repository.js';

/** Stores an immutable version, in a transaction or by itself; one that is there stays as it is. */
export async function saveVersionIn(db: Pick<Prisma.TransactionClient, 'skillVersion'>, version: Version): Promise<void> {
  const row = rowOf(version);
  await db.skillVersion.upsert({ where: { digest: row.digest }, create: row, update: {} });
}

/** The same for several at once. */
export async function saveVersionsIn(db: Pick<Prisma.TransactionClient, 'skillVersion'>, versions: readonly Version[]): Promise<void> {
  if (versions.length > 0) await db.skillVersion.createMany({ data: versions.map(rowOf), skipDuplicates: true });
}

function rowOf({ digest, tree, facts, valid, warnings }: Version): Prisma.SkillVersionCreateManyInput {
  return {
    digest,
    tree: tree.map((file) => ({ ...file })),
    valid,
    warnings: [...warnings],
    files: tree.length,
    bytes: tree.reduce((sum, file) => sum + file.bytes, 0),
    ...(facts === null ? {} : { facts: JSON.parse(JSON.stringify(facts)) }),
  };
}
