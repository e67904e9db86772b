import { withClient } from '@ambit/testing';
import type { System } from './system.js';

/** What is stored of a session, without the moments of its changes. */
export async function sessionFacts(
  system: Pick<System, 'databaseUrl'>,
  id: string,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  let rows: Record<string, unknown>[] = [];
  await withClient(system.databaseUrl, async (client) => {
    ({ rows } = await client.query<Record<string, unknown>>(
      `SELECT s."kind", s."mode", s."workspace_id", s."version", s."tape_head",
              (SELECT count(*)::int FROM "session_service"."mapping" m WHERE m."session_id" = s."id") AS "mappings"
       FROM "session_service"."session" s WHERE s."id" = $1`,
      [id],
    ));
  });
  return rows[0];
}

/** Makes a session another's subagent, as one that the orchestrator started is. */
export async function setSessionFacts(
  system: Pick<System, 'databaseUrl'>,
  id: string,
  { kind, parentSessionId }: { readonly kind: 'regular' | 'subagent'; readonly parentSessionId: string | null },
): Promise<void> {
  await withClient(system.databaseUrl, async (client) => {
    await client.query('UPDATE "session_service"."session" SET "kind" = $2, "parent_session_id" = $3 WHERE "id" = $1', [
      id,
      kind,
      parentSessionId,
    ]);
  });
}
