import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mcpBroker, mcpRunner, toolGateway, type Input } from '@ambit/contracts';
import type { RunningService } from '@ambit/service';
import { collect, startNats, startService, type TestNats } from '@ambit/testing';
import { createHash, randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RunnerConfig } from '../src/config.js';
import { RunnerModule } from '../src/runner.module.js';

const require = createRequire(import.meta.url);
const fixture = fileURLToPath(new URL('fixtures/server.mjs', import.meta.url));
const hash = (text: string): string => createHash('sha256').update(text).digest('hex');

let nats: TestNats;
let folder: string;
let runner: RunningService;

async function startRunner(): Promise<RunningService> {
  return startService('mcp-runner', RunnerModule, {
    nats,
    config: RunnerConfig,
    environment: { AMBIT_RUNNER_DATA: join(folder, randomUUID()), AMBIT_RUNNER_CHILD_USER: 'auto' },
  });
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ambit-runner-test-'));
  nats = await startNats();
  runner = await startRunner();
}, 60_000);
afterAll(async () => {
  await runner.close();
  await nats.stop();
  await rm(folder, { recursive: true, force: true });
});

type StartInput = Input<typeof mcpRunner.startInstance>;
function startOf(args: readonly string[], more: Partial<StartInput['server']> = {}): StartInput {
  const serverId = randomUUID();
  return {
    instanceId: hash(serverId),
    server: {
      serverId,
      slug: 'test',
      configGeneration: 1,
      bindingHash: hash('binding'),
      command: process.execPath,
      args: [...args],
      env: {},
      package: null,
      startTimeoutMs: 20_000,
      idleStopMs: 600_000,
      memoryBytes: null,
      era: null,
      ...more,
    },
  };
}

type CallMore = Partial<Input<typeof mcpBroker.executeCall>>;
function callOf(start: StartInput, leaseRevision: number, more: CallMore): Input<typeof mcpBroker.executeCall> {
  const { serverId, configGeneration, bindingHash } = start.server;
  return {
    serverId,
    configGeneration,
    bindingHash,
    leaseRevision,
    operationId: hash(randomUUID()),
    gatewayId: randomUUID(),
    tool: 'count',
    arguments: {},
    callTimeoutMs: 20_000,
    ...more,
  };
}
const textOf = (answer: { readonly result?: Record<string, unknown> | undefined }): string =>
  String((answer.result?.['content'] as { text: string }[] | undefined)?.[0]?.text);

describe('real servers from npm', () => {
  it('server-everything starts, is listed by pages and called, its progress is told, and a cancel reaches it', async () => {
    const start = startOf([require.resolve('@modelcontextprotocol/server-everything/dist/index.js'), 'stdio']);
    const keys = { instanceId: start.instanceId };
    const answer = await nats.bus.call(mcpRunner.startInstance, start);
    expect(answer).toMatchObject({
      protocol: '2025-11-25',
      serverInfo: { name: expect.stringContaining('everything') },
      era: { kind: 'legacy' },
    });
    const page = await nats.bus.call(mcpRunner.instanceTools, {}, { keys });
    expect(page.tools.map((tool) => tool.name)).toContain('echo');
    expect(
      textOf(
        await nats.bus.call(mcpBroker.executeCall, callOf(start, answer.leaseRevision, { tool: 'echo', arguments: { message: 'hi' } }), {
          keys,
        }),
      ),
    ).toBe('Echo: hi');

    const progress = await collect(nats.connection, toolGateway.callProgress);
    const long = callOf(start, answer.leaseRevision, { tool: 'trigger-long-running-operation', arguments: { duration: 30, steps: 60 } });
    const call = nats.bus.call(mcpBroker.executeCall, long, { keys });
    expect((await progress.next()).payload).toMatchObject({ operationId: long.operationId, progress: 1, total: 60 });
    nats.bus.signal(mcpBroker.cancelCall, { operationId: long.operationId, reason: 'test' }, { keys });
    await expect(call).rejects.toMatchObject({ code: 'CANCELLED' });
    progress.stop();
  }, 30_000);

  it('server-memory and mcp-hello-world start side by side and answer', async () => {
    const memory = startOf([require.resolve('@modelcontextprotocol/server-memory/dist/index.js')], {
      env: { MEMORY_FILE_PATH: '${SERVER_DATA}/memory.jsonl' },
    });
    const hello = startOf([join(dirname(require.resolve('mcp-hello-world')), 'stdio.js')]);
    const [first, second] = await Promise.all([
      nats.bus.call(mcpRunner.startInstance, memory),
      nats.bus.call(mcpRunner.startInstance, hello),
    ]);
    expect([first.tools, second.tools]).toEqual([9, 3]);
    const entity = { name: 'Ada', entityType: 'person', observations: ['wrote the first program'] };
    const stored = await nats.bus.call(
      mcpBroker.executeCall,
      callOf(memory, first.leaseRevision, { tool: 'create_entities', arguments: { entities: [entity] } }),
      { keys: { instanceId: memory.instanceId } },
    );
    expect(stored.result?.['isError']).not.toBe(true);
    expect(stored.result?.['structuredContent']).toEqual({ entities: [entity] });
  }, 30_000);
});

describe('an instance', () => {
  let log: string;
  let start: StartInput;
  let revision: number;
  const call = async (more: CallMore) =>
    nats.bus.call(mcpBroker.executeCall, callOf(start, revision, more), { keys: { instanceId: start.instanceId } });
  beforeAll(async () => {
    log = join(folder, 'log');
    // Written by the server, which may be another user.
    start = startOf([fixture], { env: { LOG_FILE: '${SERVER_DATA}/log' } });
    const answers = await Promise.all(Array.from({ length: 200 }, () => nats.bus.call(mcpRunner.startInstance, start)));
    revision = answers[0]?.leaseRevision ?? 0;
    expect(new Set(answers.map((answer) => answer.leaseRevision)).size).toBe(1);
    const env = JSON.parse(textOf(await call({ tool: 'env' }))) as Record<string, string>;
    log = env['LOG_FILE'] ?? '';
  }, 30_000);
  const lines = async (): Promise<string[]> => (await readFile(log, 'utf8')).trim().split('\n');

  it('is started once for 200 who ask at once', async () => {
    expect((await lines()).filter((line) => line.startsWith('start'))).toHaveLength(1);
  });

  it('lets a call through only with its own pin and lease', async () => {
    await expect(call({ configGeneration: 2 })).rejects.toMatchObject({ code: 'TARGET_CHANGED' });
    await expect(call({ bindingHash: hash('other') })).rejects.toMatchObject({ code: 'TARGET_CHANGED' });
    await expect(call({ serverId: randomUUID() })).rejects.toMatchObject({ code: 'TARGET_CHANGED' });
    await expect(call({ leaseRevision: revision + 1 })).rejects.toMatchObject({ code: 'STALE_LEASE' });
  });

  it('sends one operation once, however often it is asked', async () => {
    const operationId = hash('once');
    const before = (await lines()).filter((line) => line.startsWith('call count')).length;
    await Promise.all([call({ operationId }), call({ operationId })]);
    await expect(call({ operationId })).rejects.toMatchObject({ code: 'INDETERMINATE' });
    expect((await lines()).filter((line) => line.startsWith('call count'))).toHaveLength(before + 1);
  });

  it('keeps a large result for reading by pages', async () => {
    const operationId = hash('large');
    const { large, result } = await call({ operationId, tool: 'big', arguments: { bytes: 700_000 } });
    expect(result).toBeUndefined();
    let offset: number | null = 0;
    const parts: Buffer[] = [];
    while (offset !== null) {
      const page: { data: string; next: number | null } = await nats.bus.call(
        mcpBroker.resultPage,
        { operationId, offset },
        { keys: { instanceId: start.instanceId } },
      );
      parts.push(Buffer.from(page.data, 'base64'));
      offset = page.next;
    }
    const bytes = Buffer.concat(parts);
    expect(bytes).toHaveLength(large?.bytes ?? -1);
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(large?.digest);
    expect(textOf({ result: JSON.parse(bytes.toString()) as Record<string, unknown> })).toHaveLength(700_000);
    await expect(
      nats.bus.call(mcpBroker.resultPage, { operationId: hash('none'), offset: 0 }, { keys: { instanceId: start.instanceId } }),
    ).rejects.toMatchObject({ code: 'RESULT_GONE' });
  });

  it('whose child is killed answers that call INDETERMINATE, and the next one works', async () => {
    const pid = Number(textOf(await call({ tool: 'pid' })));
    const changed = await collect(nats.connection, mcpRunner.instanceChanged);
    const progress = await collect(nats.connection, toolGateway.callProgress);
    const hanging = call({ tool: 'slow' });
    await progress.next();
    progress.stop();
    process.kill(pid, 'SIGKILL');
    await expect(hanging).rejects.toMatchObject({ code: 'INDETERMINATE' });
    expect((await changed.next()).payload.reason).toContain('SIGKILL');
    expect(Number(textOf(await call({ tool: 'pid' })))).not.toBe(pid);
    changed.stop();
  });

  it('ends a call that takes too long with CALL_TIMEOUT and tells the server', async () => {
    await expect(call({ tool: 'hang', callTimeoutMs: 1_000 })).rejects.toMatchObject({ code: 'CALL_TIMEOUT' });
    expect((await lines()).at(-1)).toMatch(/^cancelled/);
  });

  it('finds none of our secrets, wherever it looks', async () => {
    const needle = randomUUID();
    const other = startOf([fixture], { env: { OTHER_SECRET: needle } });
    await nats.bus.call(mcpRunner.startInstance, other);
    const found = JSON.parse(textOf(await call({ tool: 'secrets', arguments: { needle } }))) as string[];
    const { runsAs } = await nats.bus.call(mcpRunner.startInstance, start);
    // Servers of one user can read each other where the platform gives them no user of their own; the status says which.
    if (runsAs.startsWith('uid')) expect(runsAs).toContain('owns nothing else');
    else expect(runsAs).toContain('the runner’s own user');
    expect(found.filter((path) => !path.includes('environ'))).toEqual([]);
  });

  it('is taken over by another runner only after it was given back, and calls under the old lease are refused', async () => {
    const second = await startRunner();
    try {
      const elsewhere = await nats.bus.call(mcpRunner.startInstance, start);
      expect(elsewhere.leaseRevision).toBe(revision);
      await nats.bus.call(mcpRunner.stopInstance, { reason: 'test' }, { keys: { instanceId: start.instanceId } });
      await expect(call({})).rejects.toMatchObject({ code: 'UNAVAILABLE' });
      const again = await nats.bus.call(mcpRunner.startInstance, start);
      expect(again.leaseRevision).toBeGreaterThan(revision);
      await expect(call({})).rejects.toMatchObject({ code: 'STALE_LEASE' });
      revision = again.leaseRevision;
      expect(textOf(await call({}))).toBe('counted');
    } finally {
      await second.close();
    }
  }, 30_000);
});

it('a server that cannot start says why in one sentence, without what it was given', async () => {
  const secret = 'sk-canary-0123456789';
  const start = startOf(['-e', `console.error('bad key ' + process.env.KEY); process.exit(4)`], { env: { KEY: secret } });
  const failure: unknown = await nats.bus.call(mcpRunner.startInstance, start).catch((error: unknown) => error);
  expect(failure).toMatchObject({
    code: 'SERVER_UNAVAILABLE',
    data: { reason: expect.stringContaining('ended with code 4; its last words: bad key •••') },
  });
  expect(JSON.stringify(failure)).not.toContain(secret);
  await expect(nats.bus.call(mcpRunner.startInstance, startOf([], { command: 'no-such-program' }))).rejects.toMatchObject({
    code: 'SERVER_UNAVAILABLE',
    data: { reason: expect.stringContaining('no-such-program') },
  });
});

it('an idle instance is stopped and gives its lease back', async () => {
  const ended = await collect(nats.connection, mcpRunner.instanceChanged);
  const start = startOf([fixture], { idleStopMs: 1_000 });
  await nats.bus.call(mcpRunner.startInstance, start);
  expect((await ended.next(({ payload }) => payload.kind === 'ended' && payload.instanceId === start.instanceId)).payload.reason).toContain(
    'not used',
  );
  ended.stop();
});
