// An agent of the Agent Client Protocol whose prompts are scripts: a JSON array of what it asks its client for; it says the answers as JSON.
// First argument: what it advertises and how it behaves. Second: a file where it notes each method that it was called with.
import * as acp from '@agentclientprotocol/sdk';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { appendFileSync, existsSync, writeFileSync } from 'node:fs';
import { Readable, Writable } from 'node:stream';

const [how, notes] = [JSON.parse(process.argv[2] ?? '{}'), process.argv[3] ?? '/dev/null'];
if (process.argv[4] === 'sign-in') {
  writeFileSync(`${notes}.signed-in`, JSON.stringify(process.argv.slice(5)));
  process.exit(how.signInFails ? 1 : 0);
}
const { agent: served, client: theirs } = acp.methods;
const note = (method, params) => appendFileSync(notes, `${JSON.stringify({ method, params, env: Object.keys(process.env) })}\n`);
const chunk = (sessionId, text) => ({ sessionId, update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } });

let cancelled = () => undefined;
const isCancelled = new Promise((resolve) => (cancelled = resolve));

const app = acp.agent({ name: 'scripted' });
app.onRequest(served.initialize, ({ params }) => {
  note('initialize', params);
  return { protocolVersion: acp.PROTOCOL_VERSION, agentCapabilities: how.capabilities ?? {}, authMethods: how.authMethods ?? [] };
});
app.onRequest(served.authenticate, ({ params }) => {
  note('authenticate', params);
  return {};
});
let servers = [];
/** Does something with the first MCP server that the agent was told of. */
async function withServer(work) {
  const [{ url, headers }] = servers;
  const client = new Client({ name: 'scripted', version: '1' });
  const requestInit = { headers: Object.fromEntries(headers.map(({ name, value }) => [name, value])) };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
  return work(client).finally(() => client.close());
}
app.onRequest(served.session.new, async ({ params, client }) => {
  note('session/new', params);
  servers = params.mcpServers;
  if (how.needsSignIn && !existsSync(`${notes}.signed-in`)) throw acp.RequestError.authRequired();
  const sessionId = `acp-${process.pid}`;
  if (how.early) await client.notify(theirs.session.update, chunk(sessionId, 'early '));
  return { sessionId };
});
app.onRequest(served.session.load, async ({ params, client }) => {
  note('session/load', params);
  await client.notify(theirs.session.update, chunk(params.sessionId, 'what was said before'));
  return {};
});
app.onRequest(served.session.resume, ({ params }) => {
  note('session/resume', params);
  return {};
});
app.onNotification(served.session.cancel, ({ params }) => {
  note('session/cancel', params);
  cancelled();
});
app.onRequest(served.session.prompt, async ({ params, client }) => {
  note('session/prompt', params);
  const { sessionId } = params;
  const answers = [];
  const known = { sessionId };
  for (const { method, params: given, as, ...step } of JSON.parse(params.prompt[0].text)) {
    if (step.say !== undefined) await client.notify(theirs.session.update, chunk(sessionId, step.say));
    else if (step.untilCancelled === true) {
      await isCancelled;
      await client.notify(theirs.session.update, chunk(sessionId, 'too late'));
      if (how.deaf) await new Promise(() => setInterval(() => undefined, 1_000));
      return { stopReason: 'cancelled' };
    } else if (step.die === true) process.exit(7);
    else if (step.list === true) answers.push(await withServer(async (mcp) => (await mcp.listTools()).tools.map(({ name }) => name)));
    else if (step.call !== undefined)
      answers.push(await withServer((mcp) => mcp.callTool(step.call)).catch((error) => ({ code: error.code, message: error.message })));
    else if (step.until !== undefined) while (!existsSync(step.until)) await new Promise((resolve) => setTimeout(resolve, 50));
    else
      try {
        const filled = Object.fromEntries(Object.entries(given).map(([name, value]) => [name, known[value?.of ?? ''] ?? value]));
        const answer = await client.request(method, { sessionId, ...filled });
        if (as !== undefined) known[as] = answer.terminalId;
        answers.push(answer);
      } catch (error) {
        answers.push({ code: error.code, message: error.message, data: error.data });
      }
  }
  await client.notify(theirs.session.update, chunk(sessionId, JSON.stringify(answers)));
  return { stopReason: 'end_turn' };
});
app.connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
