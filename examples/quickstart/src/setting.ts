import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AmbitClient, digestOfBytes } from '@ambit/client';
import { loadManifest, uploadManifest } from '@ambit/client/manifest';
import { httpApi } from '@ambit/contracts';
import { Children, freePort } from './children.js';
import { chapter, claim, dim, tell, timed } from './narrator.js';

/** This file is `examples/quickstart/{src,dist}/setting`. */
const folder = fileURLToPath(new URL('..', import.meta.url));
const WORKER = fileURLToPath(new URL('../../worker-sdk/dist/worker.js', import.meta.url));
const AGENT = 'guide';
const TOKEN_NAME = 'quickstart';
const TOKEN_MS = 3_600_000;

/** What the story plays in: people with tokens, and programs that run. */
export interface Setting {
  readonly admin: AmbitClient;
  readonly alice: AmbitClient;
  readonly bob: AmbitClient;
  readonly agent: string;
}

/** Applies ambit.yaml, connects its servers, and brings a worker and two people. */
export async function prepare(admin: AmbitClient, natsUrl: string, children: Children): Promise<Setting> {
  chapter('1. What is wanted: ambit.yaml, one agent with its servers, a skill and a plugin');
  await applyManifest(admin, await startHttpServer(children));
  await connectServers(admin);
  chapter('2. Who takes part');
  await startWorker(admin, natsUrl, children);
  await revokeTokens(admin);
  const [alice, bob] = [await personOf(admin, 'user:alice'), await personOf(admin, 'user:bob')];
  tell('user:alice may talk to the agent; user:bob may decide what waits');
  return { admin, alice, bob, agent: AGENT };
}

async function startHttpServer(children: Children): Promise<string> {
  const port = await freePort();
  await timed(`an MCP server of its own on port ${port}, over Streamable HTTP`, () =>
    children.start('mcp-server-everything', ['streamableHttp'], { env: { PORT: String(port) }, ready: /listening on port/ }),
  );
  return `http://127.0.0.1:${port}/mcp`;
}

async function applyManifest(admin: AmbitClient, httpUrl: string): Promise<void> {
  const environment = {
    QUICKSTART_HTTP_URL: httpUrl,
    // The server that writes it may run as another user, so it lies where everybody may write; one name for each clone of the repository.
    QUICKSTART_MEMORY_FILE:
      process.env.QUICKSTART_MEMORY_FILE ?? join(tmpdir(), `ambit-quickstart-${digestOfBytes(Buffer.from(folder)).slice(0, 12)}.jsonl`),
  };
  const manifest = await loadManifest(join(folder, 'ambit.yaml'), { environment });
  const { desired } = manifest;
  const plan = await admin.request(httpApi.plan, { body: { desired } });
  await uploadManifest(admin, manifest);
  await timed('applied', () => admin.request(httpApi.apply, { body: { desired, digest: plan.digest } }));
  for (const { kind, name, action } of plan.changes)
    if (action !== 'unchanged' && action !== 'keep') tell(dim(`  ${action} ${kind} ${name}`));
  const again = await admin.request(httpApi.plan, { body: { desired } });
  claim(
    again.changes.every(({ action }) => action === 'unchanged' || action === 'keep'),
    'applied again, it would change nothing',
    again.changes.filter(({ action }) => action !== 'unchanged' && action !== 'keep'),
  );
}

async function connectServers(admin: AmbitClient): Promise<void> {
  const servers = [];
  for await (const server of admin.pages(httpApi.listServers, { query: { projectId: 'default' } })) {
    if (server.set === 'quickstart' || server.owner === 'plugin:greeter') servers.push(server);
  }
  claim(
    servers.length === 4,
    'there are four real MCP servers: three of ambit.yaml, one of the plugin',
    servers.map(({ slug }) => slug),
  );
  for (const { id, slug, transport } of servers) {
    const tested = await timed(`${slug}: asked for its tools over ${transport.type}`, () =>
      admin.request(httpApi.testServer, { params: { id } }),
    );
    claim(tested.state === 'connected' && tested.tools > 0, `${slug} offers ${tested.tools} tools`, {
      state: tested.state,
      reason: tested.reason,
    });
  }
}

async function startWorker(admin: AmbitClient, natsUrl: string, children: Children): Promise<void> {
  const { workerIsolation } = await admin.request(httpApi.status);
  if (!workerIsolation) {
    // On a NATS that this installation has no signing key for: whatever that NATS asks for stands in AMBIT_CREDS, or it asks for nothing.
    await timed('a worker (examples/worker-sdk) as any client of this NATS: without a signing key, workers are not isolated', () =>
      runWorker(children, natsUrl, process.env['AMBIT_CREDS'] ?? process.env['NATS_CREDS']),
    );
    return;
  }
  for await (const { id, name, revokedAt } of admin.pages(httpApi.listWorkers, { query: { agentId: AGENT } })) {
    if (name.startsWith('quickstart-') && revokedAt === null) await admin.request(httpApi.revokeWorker, { params: { id } });
  }
  const credential = await admin.request(httpApi.createWorker, { body: { name: `quickstart-${Date.now().toString(36)}`, agentId: AGENT } });
  const secrets = await mkdtemp(join(tmpdir(), 'ambit-quickstart-'));
  const file = join(secrets, 'worker.creds');
  try {
    await writeFile(file, credential.credentials, { mode: 0o600 });
    await timed('a worker (examples/worker-sdk) with credentials for this agent’s subjects alone', () =>
      runWorker(children, natsUrl, file),
    );
  } finally {
    await rm(secrets, { recursive: true });
  }
}

function runWorker(children: Children, natsUrl: string, credentials: string | undefined): Promise<unknown> {
  return children.start(process.execPath, ['--enable-source-maps', WORKER], {
    env: { NATS_URL: natsUrl, AMBIT_CREDS: credentials, AMBIT_AGENT: AGENT, AMBIT_TOKEN: undefined },
    ready: /takes the runs of/,
  });
}

/** Those of a story before. */
async function revokeTokens(admin: AmbitClient): Promise<void> {
  for await (const { id, name, revokedAt } of admin.pages(httpApi.listTokens)) {
    if (name === TOKEN_NAME && revokedAt === null) await admin.request(httpApi.revokeToken, { params: { id } });
  }
}

async function personOf(admin: AmbitClient, principal: string): Promise<AmbitClient> {
  const { token } = await admin.request(httpApi.createToken, { body: { name: TOKEN_NAME, principal, expiresInMs: TOKEN_MS } });
  return new AmbitClient({ url: admin.url, token });
}
