import type { Prisma } from '@ambit/db';
import type { Version } from './skill.repository.js';

/** Stores an immutable version, in a transaction or by itself; one that is there stays as it is. */
export async function saveVersionIn(db: Pick<Prisma.TransactionClient, 'skillVersion'>, version: Version): Promise<void> {
  const { digest, tree, facts, valid, warnings } = version;
  const data = {
    digest,
    tree: tree.map((file) => ({ ...file })),
    valid,
    warnings: [...warnings],
    files: tree.length,
    bytes: tree.reduce((sum, file) => sum + file.bytes, 0),
  };
  await db.skillVersion.upsert({
    where: { digest },
    create: { ...data, ...(facts === null ? {} : { facts: JSON.parse(JSON.stringify(facts)) }) },
    update: {},
  });
}
