// An MCP client as any other: it needs the edge's address and a token, and knows nothing else of Ambit.
//   AMBIT_EDGE_URL=http://127.0.0.1:8090/mcp AMBIT_EDGE_TOKEN=ambit_edge_… node dist/client.js [tool] [arguments as JSON]
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const { AMBIT_EDGE_URL: url = 'http://127.0.0.1:8090/mcp', AMBIT_EDGE_TOKEN: token } = process.env;
if (token === undefined) throw new Error('AMBIT_EDGE_TOKEN is not set; `ambit edge-token create` makes one');
const [tool, text = '{}'] = process.argv.slice(2);

const client = new Client({ name: 'example', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } });
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { authorization: `Bearer ${token}` } } }));
try {
  if (tool === undefined) {
    const { tools } = await client.listTools();
    process.stdout.write(tools.map(({ name, description = '' }) => `${name}  ${description.split('\n')[0]}\n`).join(''));
  } else {
    // The key makes it safe to send the call again when no answer came: it runs once.
    const _meta = { 'ambit/idempotencyKey': crypto.randomUUID() };
    const { content, isError } = await client.callTool({ name: tool, arguments: JSON.parse(text), _meta });
    for (const block of content) process.stdout.write(`${block.type === 'text' ? block.text : `(${block.type})`}\n`);
    if (isError === true) process.exitCode = 1;
  }
} finally {
  await client.close();
}
