import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { buckets, rpc, runConsumer, signal, snapshotKey, streams, subject, workerInboxPrefix, type Contract } from '@ambit/contracts';
import { findNatsServer, startNats, type NatsServer } from '@ambit/embedded';
import {
  ACCOUNT,
  credentialsFile,
  keyFiles,
  lookUpAccount,
  makeUserKey,
  prepareInstallation,
  pushAccount,
  readAccount,
  renewedAccount,
  signAccount,
  signUser,
  withRevocations,
  workerPermissions,
  type Installation,
} from '@ambit/identity';
import { AckPolicy, DiscardPolicy, jetstream, jetstreamManager, RetentionPolicy, StorageType } from '@nats-io/jetstream';
import { Kvm } from '@nats-io/kv';
import { connect, createInbox, credsAuthenticator, type Msg, type NatsConnection } from '@nats-io/transport-node';
import { z } from 'zod';

jest.setTimeout(60_000);
const cacheDir = fileURLToPath(new URL('../../../.ambit/bin', import.meta.url));
const start = rpc('ambit.rpc.session-service.v1.run.start.{agentId}', {
  summary: 'for workers',
  audience: 'worker',
  input: z.object({}),
  output: z.object({}),
});
const get = rpc('ambit.rpc.session-service.v1.agent.get', { summary: 'for services', input: z.object({}), output: z.object({}) });
const output = signal('ambit.ctl.session-service.v1.run.output.{agentId}.{runId}', {
  summary: 'text',
  audience: 'worker',
  payload: z.object({}),
});
const callTool = rpc('ambit.rpc.worker.v1.tool.call.{agentId}.{workerId}', {
  summary: 'tools of workers',
  input: z.object({}),
  output: z.object({}),
});
const cancel = signal('ambit.ctl.worker.v1.run.cancel.{agentId}.{workerId}', { summary: 'cancel', payload: z.object({}) });
const contracts: readonly Contract[] = [start, get, output, callTool, cancel];

const everything = { pub: { allow: ['>'] }, sub: { allow: ['>'] } };
const nowSeconds = (): number => Math.floor(Date.now() / 1_000);
const connections: NatsConnection[] = [];
let folder: string;
let nats: NatsServer;
let installation: Installation;
let service: NatsConnection;
let alpha: NatsConnection;
let onAlphaError: (error: Error) => void = () => undefined;

async function startServer(): Promise<NatsServer> {
  const { path } = await findNatsServer({ cacheDir });
  return startNats({ binary: path, dataDir: join(folder, 'nats'), authorization: installation.serverConfig });
}

async function connectAs(credentials: string, inboxPrefix = '_INBOX'): Promise<NatsConnection> {
  const connection = await connect({
    servers: nats.url,
    authenticator: credsAuthenticator(Buffer.from(credentials)),
    inboxPrefix,
    reconnect: false,
  });
  connections.push(connection);
  return connection;
}

function workerCredentials(agentId: string, credentialName = 'main'): { readonly text: string; readonly key: string } {
  const userKey = makeUserKey();
  const jwt = signUser(
    {
      name: `${agentId}/${credentialName}`,
      userKey: userKey.getPublicKey(),
      permissions: workerPermissions(contracts, { agentId, credentialName, pools: ['shared'] }),
      account: installation.keys.workers.getPublicKey(),
      issuedAt: nowSeconds(),
      expiresAt: nowSeconds() + 3_600,
    },
    installation.keys.workersSigning,
  );
  return { text: credentialsFile(jwt, userKey), key: userKey.getPublicKey() };
}

/** Publishes and waits until the server has said what it thinks of it. */
async function publishAndSettle(
  connection: NatsConnection,
  to: string,
  options: { readonly reply?: string; readonly data?: string } = {},
): Promise<void> {
  connection.publish(to, options.data ?? '{}', options.reply === undefined ? {} : { reply: options.reply });
  await connection.flush();
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ambit-walls-'));
  installation = await prepareInstallation({
    folder,
    contracts,
    users: new Map([['everything', everything]]),
    resolverFolder: join(folder, 'resolver'),
    nowSeconds: nowSeconds(),
  });
  nats = await startServer();
  service = await connectAs(await readFile(join(folder, keyFiles.serviceCredentials('everything')), 'utf8'));
  const manager = await jetstreamManager(service);
  await manager.streams.add({
    name: streams.runs.name,
    subjects: [...streams.runs.subjects],
    retention: RetentionPolicy.Workqueue,
    storage: StorageType.Memory,
    discard: DiscardPolicy.New,
  });
  for (const agent of ['alpha', 'beta']) {
    await manager.consumers.add(streams.runs.name, {
      durable_name: runConsumer(agent, 'shared'),
      ack_policy: AckPolicy.Explicit,
      filter_subject: `ambit.job.session-service.v1.run.execute.${agent}.shared`,
    });
    await jetstream(service).publish(`ambit.job.session-service.v1.run.execute.${agent}.shared`, JSON.stringify({ run: agent }));
  }
  const snapshots = await new Kvm(service).create(buckets.snapshots.name, { storage: StorageType.Memory });
  for (const agent of ['alpha', 'beta']) await snapshots.put(snapshotKey.head(agent, 'f00d'), `of ${agent}`);
  await new Kvm(service).create(buckets.epochs.name, { storage: StorageType.Memory });
  service.subscribe(start.subject.replace('{agentId}', '*'), {
    callback: (_error, message) => void message.respond(JSON.stringify({ for: message.subject })),
  });
  service.subscribe(get.subject, { callback: (_error, message) => void message.respond('{"secret":true}') });
  alpha = await connectAs(workerCredentials('alpha').text, workerInboxPrefix({ agentId: 'alpha', credentialName: 'main' }));
  void (async () => {
    for await (const status of alpha.status()) if (status.type === 'error') onAlphaError(status.error);
  })();
});

afterAll(async () => {
  for (const connection of connections) await connection.close();
  await nats?.stop();
  await rm(folder, { recursive: true, force: true });
});

describe('a worker within its agent', () => {
  it('is answered on its own subject', async () => {
    const answer = await alpha.request(subject(start, { agentId: 'alpha' }), '{}', { timeout: 2_000 });
    expect(answer.json()).toEqual({ for: subject(start, { agentId: 'alpha' }) });
  });

  it('takes and acknowledges a run of its pool', async () => {
    const next = `$JS.API.CONSUMER.MSG.NEXT.${streams.runs.name}.${runConsumer('alpha', 'shared')}`;
    const inbox = createInbox(workerInboxPrefix({ agentId: 'alpha', credentialName: 'main' }));
    // A pulled message keeps the subject it was stored under, so it is taken by an inbox of its own.
    const pulled = new Promise<Msg>((resolve) => alpha.subscribe(inbox, { max: 1, callback: (_error, message) => resolve(message) }));
    alpha.publish(next, JSON.stringify({ batch: 1, expires: 2_000_000_000 }), { reply: inbox });
    const job = await pulled;
    expect(job.json()).toEqual({ run: 'alpha' });
    await alpha.request(job.reply ?? '', '+ACK', { timeout: 2_000 });
    const info = await (await jetstreamManager(service)).consumers.info(streams.runs.name, runConsumer('alpha', 'shared'));
    expect(info.num_ack_pending).toBe(0);
    expect(info.ack_floor.stream_seq).toBeGreaterThan(0);
  });

  it('reads its snapshots by a plain request', async () => {
    const bucket = buckets.snapshots.name;
    const answer = await alpha.request(`$JS.API.DIRECT.GET.KV_${bucket}.$KV.${bucket}.${snapshotKey.head('alpha', 'f00d')}`, '', {
      timeout: 2_000,
    });
    expect(answer.string()).toBe('of alpha');
  });

  it('answers a request for its tool and hears a signal to it', async () => {
    const signals: string[] = [];
    alpha.subscribe(subject(callTool, { agentId: 'alpha', workerId: 'w1' }), {
      callback: (_error, message) => void message.respond('{"ran":true}'),
    });
    alpha.subscribe(subject(cancel, { agentId: 'alpha', workerId: 'w1' }), {
      callback: (_error, message) => void signals.push(message.subject),
    });
    await alpha.flush();
    service.publish(subject(cancel, { agentId: 'alpha', workerId: 'w1' }), '{}');
    const answer = await service.request(subject(callTool, { agentId: 'alpha', workerId: 'w1' }), '{}', { timeout: 2_000 });
    expect(answer.json()).toEqual({ ran: true });
    expect(signals).toEqual([subject(cancel, { agentId: 'alpha', workerId: 'w1' })]);
  });

  it('sends output that a service hears', async () => {
    const heard = new Promise<Msg>((resolve) =>
      service.subscribe(subject(output, { agentId: 'alpha', runId: 'r1' }), { max: 1, callback: (_error, message) => resolve(message) }),
    );
    await service.flush();
    alpha.publish(subject(output, { agentId: 'alpha', runId: 'r1' }), '{"text":"hello"}');
    expect((await heard).json()).toEqual({ text: 'hello' });
  });
});

describe('a worker outside its agent', () => {
  const bucket = buckets.snapshots.name;
  it.each([
    ['another agent’s call', subject(start, { agentId: 'beta' })],
    ['a call that is not for workers', get.subject],
    ['another agent’s output', subject(output, { agentId: 'beta', runId: 'r1' })],
    ['another agent’s runs', `$JS.API.CONSUMER.MSG.NEXT.${streams.runs.name}.${runConsumer('beta', 'shared')}`],
    ['another pool of its agent', `$JS.API.CONSUMER.MSG.NEXT.${streams.runs.name}.${runConsumer('alpha', 'other')}`],
    ['another agent’s acknowledgements', `$JS.ACK.${streams.runs.name}.${runConsumer('beta', 'shared')}.1.1.1.1.0`],
    ['another agent’s snapshot', `$JS.API.DIRECT.GET.KV_${bucket}.$KV.${bucket}.${snapshotKey.head('beta', 'f00d')}`],
    ['the stream API', `$JS.API.STREAM.INFO.${streams.runs.name}`],
    ['a bucket', `$KV.${buckets.epochs.name}.session-service.builtin.tools`],
    ['its own inbox of another credential', '_INBOX.alpha.other.x'],
    ['the system', '$SYS.REQ.CLAIMS.UPDATE'],
  ])('may not publish %s', async (_what, to) => {
    const refused = new Promise<Error>((resolve) => (onAlphaError = resolve));
    await publishAndSettle(alpha, to);
    expect((await refused).message).toMatch(/permissions violation for publish/i);
  });

  it.each([
    ['everything', '>'],
    ['all inboxes', '_INBOX.>'],
    ['another credential’s inbox', '_INBOX.alpha.other.>'],
    ['another agent’s tools', 'ambit.rpc.worker.v1.*.*.beta.*'],
    ['another agent’s signals', 'ambit.ctl.worker.v1.run.cancel.beta.*'],
    ['every agent’s signals', 'ambit.ctl.worker.v1.>'],
  ])('may not listen to %s', async (_what, to) => {
    const failure = new Promise<Error | null>((resolve) => alpha.subscribe(to, { callback: (error) => resolve(error) }));
    await alpha.flush();
    expect((await failure)?.message).toMatch(/permissions violation for subscription/i);
  });
});

describe('a foreign reply subject on an allowed request', () => {
  it('overwrites no epoch by a direct get', async () => {
    const epochs = await new Kvm(service).open(buckets.epochs.name);
    await epochs.put('session-service.builtin.tools', '1');
    const bucket = buckets.snapshots.name;
    await publishAndSettle(alpha, `$JS.API.DIRECT.GET.KV_${bucket}.$KV.${bucket}.${snapshotKey.head('alpha', 'f00d')}`, {
      reply: `$KV.${buckets.epochs.name}.session-service.builtin.tools`,
      data: '',
    });
    await publishAndSettle(alpha, subject(start, { agentId: 'alpha' }), {
      reply: `$KV.${buckets.epochs.name}.session-service.builtin.tools`,
    });
    await service.request(get.subject, '{}');
    const entry = await epochs.get('session-service.builtin.tools');
    expect(entry?.string()).toBe('1');
    expect(entry?.revision).toBe(1);
  });

  it('puts no run on the queue and answers no other call by a pull or an acknowledgement', async () => {
    const manager = await jetstreamManager(service);
    const before = (await manager.streams.info(streams.runs.name)).state.last_seq;
    const forged = subject(start, { agentId: 'beta' });
    const received: string[] = [];
    const watch = service.subscribe('ambit.>', { callback: (_error, message) => void received.push(message.subject) });
    await service.flush();
    const next = `$JS.API.CONSUMER.MSG.NEXT.${streams.runs.name}.${runConsumer('alpha', 'shared')}`;
    for (const reply of ['ambit.job.session-service.v1.run.execute.beta.shared', forged, get.subject]) {
      await publishAndSettle(alpha, next, { reply, data: JSON.stringify({ batch: 1, no_wait: true }) });
      await publishAndSettle(alpha, `$JS.ACK.${streams.runs.name}.${runConsumer('alpha', 'shared')}.1.1.1.1.0`, { reply, data: '+ACK' });
    }
    await service.request(get.subject, '{}');
    watch.unsubscribe();
    expect(received.filter((to) => to !== get.subject)).toEqual([]);
    expect((await manager.streams.info(streams.runs.name)).state.last_seq).toBe(before);
  });
});

describe('revocation', () => {
  it('ends the connection, refuses the next one, and outlives a restart of the server', async () => {
    const credentials = workerCredentials('alpha', 'leaving');
    const leaving = await connectAs(credentials.text, workerInboxPrefix({ agentId: 'alpha', credentialName: 'leaving' }));
    const administrator = await connectAs(await readFile(join(folder, keyFiles.systemCredentials), 'utf8'));
    const key = installation.keys.workers.getPublicKey();
    const current = readAccount((await lookUpAccount(administrator, key)) ?? '');
    const revoked = withRevocations(current.nats, [credentials.key], nowSeconds());
    await pushAccount(
      administrator,
      signAccount(
        { key, name: ACCOUNT.workers, body: revoked, issuedAt: Math.max(nowSeconds(), current.iat + 1) },
        installation.keys.operatorSigning,
      ),
    );
    await leaving.closed();
    await expect(connectAs(credentials.text)).rejects.toThrow(/authorization|authentication/i);

    const held = await lookUpAccount(administrator, key);
    const wanted = { key, name: ACCOUNT.workers, body: installation.accounts.get(key)?.body ?? current.nats };
    expect(renewedAccount(wanted, held, { operatorSigning: installation.keys.operatorSigning, nowSeconds: nowSeconds() })).toBeUndefined();

    await nats.stop();
    nats = await startServer();
    await expect(connectAs(credentials.text)).rejects.toThrow(/authorization|authentication/i);
    const staying = await connectAs(workerCredentials('alpha').text, workerInboxPrefix({ agentId: 'alpha', credentialName: 'main' }));
    await staying.flush();
  });
});
