// The four ways that are compared. Each cell: `prepare(lanes, perLane)` gives `call(lane, index)`.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { stdioEcho } from './world.mjs';

export const PAYLOAD_BYTES = 512;
const text = 'x'.repeat(PAYLOAD_BYTES - JSON.stringify({ text: '' }).length);
const input = JSON.stringify({ text });
/** A step holds at most 128 calls. */
const CALLS_IN_STEP = 64;

/** (a) client → relay → echo over nats.js alone, in the services' account. */
export async function floorCell(connection, { natsUrl, credentials }) {
  const env = { ...process.env, NATS_URL: natsUrl, NATS_CREDS: credentials };
  const [relayed, echoed] = ['bench.relay', 'bench.echo'];
  const children = [
    await started('./processes/echo.mjs', { ...env, SUBJECT: echoed }),
    await started('./processes/relay.mjs', { ...env, SUBJECT: relayed, NEXT: echoed }),
  ];
  const call = async () => (await connection.request(relayed, input, { timeout: 30_000 })).json().text === text;
  return {
    name: 'floor',
    title: 'bare relay, two hops',
    processes: { echo: children[0].pid, relay: children[1].pid },
    prepare: async () => call,
    close: async () => {
      for (const child of children) child.disconnect();
    },
  };
}

/** (b), (c): worker → gateway → broker or runner → echo. */
export function callCell({ worker, journal }, { name, title, tool }) {
  const isRight = ({ content }) => content?.[0]?.text === text;
  return {
    name,
    title,
    callsAtOnce: CALLS_IN_STEP,
    isJournaled: true,
    settle: () => journal.quiet(),
    prepare: (lanes, perLane) => worker.prepare({ lanes, perLane, tool, input, isRight }),
    close: async () => undefined,
  };
}

/** (d) the SDK's client with the same stdio server as its child. */
export async function directCell() {
  const client = new Client({ name: 'bench', version: '1.0.0' });
  await client.connect(new StdioClientTransport(stdioEcho));
  const call = async () => (await client.callTool({ name: 'echo', arguments: { text } })).content[0].text === text;
  return { name: 'direct', title: 'SDK client straight to stdio', prepare: async () => call, close: () => client.close() };
}

function started(file, env) {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), { env });
  return new Promise((resolve, reject) => {
    child.once('message', () => resolve(child));
    child.once('exit', (code) => reject(new Error(`${file} ended with ${code}`)));
  });
}
