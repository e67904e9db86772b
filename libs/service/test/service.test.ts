import { afterAll, beforeAll, expect, it } from '@jest/globals';
import {
  adminApi,
  mcpBroker,
  pluginRegistry,
  sessionService,
  skillStore,
  toolGateway,
  type AuditAppended,
  type Parsed,
  type Returns,
} from '@ambit/contracts';
import { Answers, Bus, Hears, type Call, type Delivery } from '@ambit/bus';
import { appendAudit, DB, openDatabase, OutboxRelay, type AdminDb } from '@ambit/db';
import { startNats, startPostgres, startService, type TestNats, type TestPostgres } from '@ambit/testing';
import { Controller, Inject, Injectable, Module } from '@nestjs/common';
import { z } from 'zod';
import { CONFIG, Metrics } from '../src/index.js';

const Settings = z.object({ GREETING: z.string().min(1) });

let nats: TestNats;
let postgres: TestPostgres;
beforeAll(async () => {
  [nats, postgres] = await Promise.all([startNats(), startPostgres()]);
}, 60_000);
afterAll(async () => {
  await nats.stop();
  await postgres.stop();
});

let told: (record: AuditAppended) => void = () => undefined;

@Injectable()
class Renewals {
  constructor(
    @Inject(CONFIG) readonly settings: z.output<typeof Settings>,
    @Inject(DB) private readonly db: AdminDb,
    private readonly outbox: OutboxRelay,
    readonly bus: Bus,
    readonly metrics: Metrics,
  ) {}

  async renew(call: Call<typeof adminApi.renewCredential>): Promise<Returns<typeof adminApi.renewCredential>> {
    const ids = await this.db.$transaction((transaction) =>
      appendAudit(transaction, 'admin-api', {
        at: call.startedAt.toISOString(),
        actor: null,
        principal: null,
        via: null,
        projectId: null,
        action: this.settings.GREETING,
        target: call.keys.agentId,
        beforeDigest: null,
        afterDigest: null,
        rule: null,
        reason: null,
        traceId: call.traceId,
        retention: 'audit',
      }),
    );
    await this.outbox.flushed(ids, call.signal);
    throw new Error('renewed, and then lost');
  }
}

@Controller()
class Handlers {
  constructor(private readonly renewals: Renewals) {}
  @Answers(adminApi.renewCredential)
  renew(_input: Parsed<typeof adminApi.renewCredential>, call: Call<typeof adminApi.renewCredential>) {
    return this.renewals.renew(call);
  }
  @Hears(sessionService.auditAppended)
  @Hears(toolGateway.auditAppended)
  @Hears(mcpBroker.auditAppended)
  @Hears(skillStore.auditAppended)
  @Hears(pluginRegistry.auditAppended)
  @Hears(adminApi.auditAppended)
  heard(record: AuditAppended, _delivery: Delivery) {
    told(record);
  }
}
@Module({ controllers: [Handlers], providers: [Renewals] })
class TestModule {}

const VALID = { publicKey: `U${'A'.repeat(55)}`, proof: '', at: '2030-01-02T03:04:05.000Z' };
/** What the real admin-api hears and answers beside what is tried here. */
const dynamic = [
  sessionService.runOutput,
  skillStore.importProgressed,
  sessionService.interactionRequested,
  toolGateway.callParked,
  adminApi.resolveEdgeToken,
  adminApi.issueRunToken,
];
const options = () => ({ nats, postgres, config: Settings, database: openDatabase, dynamic, environment: { GREETING: 'hello' } });

async function ops(port: number, path: string): Promise<{ readonly status: number; readonly text: string }> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`);
  return { status: response.status, text: await response.text() };
}

it('runs a module on the bus and Postgres, told by the outbox, seen by health and metrics', async () => {
  const heard = new Promise<AuditAppended>((resolve) => (told = resolve));
  const service = await startService('admin-api', TestModule, options());
  try {
    expect(await ops(service.opsPort, '/livez')).toEqual({ status: 200, text: '{"live":true}' });
    expect(await ops(service.opsPort, '/readyz')).toEqual({ status: 200, text: '{"ready":true,"checks":{"nats":"ok","postgres":"ok"}}' });
    const renewal = nats.bus.call(adminApi.renewCredential, VALID, { keys: { agentId: 'a1' } });
    await expect(renewal).rejects.toMatchObject({ code: 'INTERNAL' });
    expect(await heard).toMatchObject({ records: [{ action: 'hello', target: 'a1', sequence: 1 }] });
    const metrics = await ops(service.opsPort, '/metrics');
    expect(metrics.text).toContain(
      'ambit_answer_seconds_count{service="admin-api",contract="ambit.rpc.admin-api.v1.credential.renew.{agentId}",code="INTERNAL"} 1',
    );
    expect(metrics.text).toMatch(/ambit_outbox_rows\{service="admin-api"\} 0/);
  } finally {
    await service.close();
  }
  await expect(ops(service.opsPort, '/livez')).rejects.toThrow();
}, 30_000);

it('names every variable that is wrong, and none of their values', async () => {
  const starting = startService('admin-api', TestModule, { ...options(), environment: { GREETING: '', OPS_PORT: 's3cret' } });
  await expect(starting).rejects.toThrow(/- OPS_PORT: /);
  await expect(starting).rejects.not.toThrow(/s3cret/);
  await expect(startService('admin-api', TestModule, { ...options(), environment: {} })).rejects.toThrow(/- GREETING: /);
  await expect(startService('admin-api', TestModule, { ...options(), postgres: undefined })).rejects.toThrow(
    /- DATABASE_URL: admin-api keeps its state in Postgres/,
  );
});

it('leaves nothing behind when it cannot start', async () => {
  @Module({})
  class Empty {}
  await expect(startService('admin-api', Empty, options())).rejects.toThrow(/no method is decorated/);
});

it('is unready without NATS, and still alive', async () => {
  const own = await startNats();
  const service = await startService('admin-api', TestModule, { ...options(), nats: own });
  await own.stop();
  const { status, text } = await ops(service.opsPort, '/readyz');
  expect({ status, checks: JSON.parse(text).checks }).toEqual({ status: 503, checks: { nats: 'away', postgres: 'ok' } });
  expect((await ops(service.opsPort, '/livez')).status).toBe(200);
  await service.close();
}, 30_000);
