// Long because one running system serves them all: what servers ask for within calls, and the skills that they offer.
import { sessionService, toolGateway, type CallResult, type Input, type Interaction, type JsonObject, type Server } from '@ambit/contracts';
import { until } from '@ambit/testing';
import { afterAll, beforeAll, expect, jest } from '@jest/globals';
import type { ServerContext } from '@modelcontextprotocol/server';
import { randomUUID } from 'node:crypto';
import { intend, type HandRun } from '../system/by-hand.js';
import { alice, Scene } from '../system/scene.js';
import { lists, startSdkServer, type SdkServer } from '../system/sdk-server.js';
import { verifies } from '../verifies.js';

jest.setTimeout(180_000);

const FORM = {
  type: 'object',
  properties: { name: { type: 'string', maxLength: 20 }, size: { type: 'string', enum: ['s', 'l'] } },
  required: ['name'],
};
let scene: Scene;
const upstreams: SdkServer[] = [];
beforeAll(async () => {
  scene = await Scene.start({ services: ['session-service', 'tool-gateway', 'mcp-broker', 'skill-store', 'plugin-registry'] });
});
afterAll(async () => {
  for (const upstream of upstreams) await upstream.stop();
  await scene?.stop();
});

type Policy = Parameters<Scene['agent']>[0];

/** A connected server of either era whose tool `ask` asks for what its arguments say, and answers with what it was told. */
async function asking(eras: 'legacy' | 'modern'): Promise<Server> {
  const upstream = await startSdkServer({ capabilities: { tools: {} }, eras });
  upstreams.push(upstream);
  lists(upstream, { tools: [{ name: 'ask', inputSchema: { type: 'object' } }] });
  upstream.answers.set('tools/call', async (input, context) => {
    const request = input['arguments'] as { method: string; params: JsonObject };
    const responses = context.mcpReq.inputResponses;
    if (eras === 'modern' && responses === undefined) return { resultType: 'input_required', inputRequests: { one: request } };
    const answer = eras === 'modern' ? responses?.['one'] : await told(context, request);
    return { content: [{ type: 'text', text: JSON.stringify(answer) }] };
  });
  const slug = `asks-${randomUUID().slice(0, 8)}`;
  return scene.server(slug, { transport: { type: 'http', url: upstream.url }, sampling: true });
}
const anything = { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } };
const told = (context: ServerContext, request: object): Promise<unknown> =>
  (context.mcpReq.send as (request: object, schema: unknown) => Promise<unknown>)(request, anything).catch((error: unknown) => ({
    refused: (error as Error).message,
  }));

interface Working {
  readonly run: HandRun;
  readonly results: Promise<readonly CallResult[]>;
}
/** A run whose one call has its server ask for something. */
async function working(
  server: Server,
  request: { readonly method: string; readonly params: JsonObject },
  policy: Policy = {},
): Promise<Working> {
  const agent = await scene.agent(policy);
  const worker = await scene.worker(agent);
  await scene.send(agent);
  const run = await worker.begin();
  const stored = await run.step([intend(`mcp__${server.slug}__ask`, request)]);
  const results = run.batch(stored);
  results.catch(() => undefined);
  return { run, results };
}
async function asked({ run }: Working): Promise<Interaction> {
  await until(async () => (await scene.pending(run.ref.sessionId)).length > 0, 30_000);
  const [interaction] = await scene.pending(run.ref.sessionId);
  if (interaction === undefined) throw new Error('nothing is asked');
  return interaction;
}
const decide = (id: string, decision: Omit<Input<typeof sessionService.decideInteraction>, 'id' | 'by'>) =>
  scene.bus.call(sessionService.decideInteraction, { id, by: alice, ...decision });
const answerOf = async ({ results }: Working): Promise<unknown> => {
  const [result] = await results;
  expect(result).toMatchObject({ status: 'completed' });
  return JSON.parse(String((result?.content?.[0] as { text?: string } | undefined)?.text));
};

for (const eras of ['legacy', 'modern'] as const) {
  const form = { method: 'elicitation/create', params: { mode: 'form', message: 'Who are you?', requestedSchema: FORM } };
  verifies(['R-MCP-18#1'], `a server's question is a person's to answer, within the call (${eras})`, async () => {
    const server = await asking(eras);
    const filled = await working(server, form);
    const interaction = await asked(filled);
    expect(interaction).toMatchObject({
      kind: 'elicitation',
      tool: `mcp__${server.slug}__ask`,
      askedBack: { kind: 'form', server: server.slug, message: 'Who are you?' },
    });
    await expect(decide(interaction.id, { decision: 'allow' })).rejects.toMatchObject({ code: 'INTERACTION_KIND' });
    for (const content of [{}, { name: 1 }, { name: 'Ada', size: 'xl' }, { name: 'Ada', more: 1 }])
      await expect(decide(interaction.id, { decision: 'answer', answer: { content } })).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    expect(await decide(interaction.id, { decision: 'answer', answer: { content: { name: 'Ada', size: 'l' } } })).toMatchObject({
      status: 'answered',
    });
    expect(await answerOf(filled)).toMatchObject({ action: 'accept', content: { name: 'Ada', size: 'l' } });
    expect(await filled.run.finish('completed')).toMatchObject({ status: 'completed' });

    const declined = await working(server, form);
    await decide((await asked(declined)).id, { decision: 'deny' });
    expect(await answerOf(declined)).toMatchObject({ action: 'decline' });

    const url = { mode: 'url', message: 'Sign in', url: 'https://example.com/sign-in', elicitationId: randomUUID() };
    const opened = await working(server, { method: 'elicitation/create', params: url });
    const toOpen = await asked(opened);
    expect(toOpen.askedBack).toMatchObject({ kind: 'url', url: 'https://example.com/sign-in' });
    await expect(decide(toOpen.id, { decision: 'answer', answer: { content: {} } })).rejects.toMatchObject({ code: 'INTERACTION_KIND' });
    await decide(toOpen.id, { decision: 'allow' });
    expect(await answerOf(opened)).toMatchObject({ action: 'accept' });
  });

  verifies(['R-MCP-18#2'], `with its call ends what was asked within it (${eras})`, async () => {
    const cancelled = await working(await asking(eras), form);
    const interaction = await asked(cancelled);
    const [call] = (await scene.bus.call(toolGateway.listCalls, { runId: cancelled.run.ref.runId })).items;
    await scene.bus.call(toolGateway.cancelCall, { operationId: call?.operationId ?? '' });
    expect(await cancelled.results).toMatchObject([{ status: 'cancelled' }]);
    await until(async () => (await scene.bus.call(sessionService.getInteraction, { id: interaction.id })).status === 'cancelled');
    await expect(decide(interaction.id, { decision: 'answer', answer: { content: { name: 'Ada' } } })).rejects.toMatchObject({
      code: 'NO_INTERACTION',
    });
  });

  verifies(['R-MCP-18#1'], `completions and roots are given as the policy says, and by default not at all (${eras})`, async () => {
    const server = await asking(eras);
    const sample = {
      method: 'sampling/createMessage',
      params: { messages: [{ role: 'user', content: { type: 'text', text: 'Hello' } }], maxTokens: 5 },
    };
    const [refused] = await (await working(server, sample)).results;
    expect(JSON.stringify(refused)).toContain('serverRequests.sampling');
    const sampled = await working(server, sample, { serverRequests: { sampling: 'ask' } });
    const interaction = await asked(sampled);
    expect(interaction).toMatchObject({ kind: 'sampling', askedBack: { kind: 'sampling', params: sample.params } });
    await decide(interaction.id, {
      decision: 'answer',
      answer: { content: { role: 'assistant', model: 'by hand', content: { type: 'text', text: 'Hi' } } },
    });
    expect(await answerOf(sampled)).toMatchObject({ role: 'assistant', content: { text: 'Hi' } });

    const roots = { method: 'roots/list', params: {} };
    expect(await answerOf(await working(server, roots))).toMatchObject({ roots: [] });
    const shown = await working(server, roots, { serverRequests: { roots: ['file:///srv/work', 'file:///srv/{workspaceId}'] } });
    expect(await answerOf(shown)).toMatchObject({ roots: [{ uri: 'file:///srv/work' }] });
  });
}
