import { sessionService, skillStore } from '@ambit/contracts';
import { openDatabase } from '@ambit/db';
import { freePort } from '@ambit/embedded';
import { startNats, startPostgres, startService, until, withClient, type TestNats, type TestPostgres } from '@ambit/testing';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { AdminApiModule } from '../src/admin-api.module.js';
import { AdminApiConfig } from '../src/config.js';
import { configureHttp } from '../src/configure.js';

const TOKEN = 'the-first-token-of-this-test';
const DAY_MS = 86_400_000;
let nats: TestNats;
let postgres: TestPostgres;
let port: number;
let service: Awaited<ReturnType<typeof startService>>;

/** Records of one owner, as old as said in days, oldest first. */
async function kept(owner: string, ...ages: readonly number[]): Promise<void> {
  await withClient(postgres.url, async (client) => {
    for (const [index, days] of ages.entries()) {
      const at = new Date(Date.now() - days * DAY_MS).toISOString();
      const record = {
        ...{ schemaVersion: 1, owner, sequence: index + 1, at, action: 'thing.done', target: `thing:${index}`, projectId: null },
        ...{ actor: null, principal: null, via: null, beforeDigest: null, afterDigest: null, rule: null, reason: null, traceId: null },
        ...{ retention: 'audit', previousHash: '0'.repeat(64), hash: 'f'.repeat(64) },
      };
      await client.query(
        `INSERT INTO "admin_api"."audit_view" ("owner", "sequence", "at", "action", "target", "record") VALUES ($1, $2, $3, $4, $5, $6)`,
        [owner, record.sequence, at, record.action, record.target, record],
      );
    }
  });
}

beforeAll(async () => {
  [nats, postgres] = await Promise.all([startNats(), startPostgres()]);
  port = await freePort();
  await kept('session-service', 90, 40, 20, 1);
  await kept('tool-gateway', 90, 60);
  service = await startService('admin-api', AdminApiModule, {
    ...{ nats, postgres, config: AdminApiConfig, database: openDatabase, dynamic: [sessionService.runOutput, skillStore.importProgressed] },
    http: { port: (config) => config.AMBIT_HTTP_PORT, configure: configureHttp },
    environment: { AMBIT_HTTP_PORT: String(port), AMBIT_BOOTSTRAP_TOKEN: TOKEN, AMBIT_KEEP_AUDIT_DAYS: '30' },
  });
}, 120_000);
afterAll(async () => {
  await service?.close();
  await postgres?.stop();
  await nats?.stop();
});

it('audit records leave the view after their days, and the newest of an owner never does', async () => {
  const told = async (): Promise<string[]> => {
    const response = await fetch(`http://127.0.0.1:${port}/v1/audit?action=thing.done`, {
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    const { items } = (await response.json()) as { items: { owner: string; sequence: number }[] };
    return items.map(({ owner, sequence }) => `${owner} ${sequence}`).sort();
  };
  await until(async () => (await told()).length <= 3);
  expect(await told()).toEqual(['session-service 3', 'session-service 4', 'tool-gateway 2']);
});
