// Answers every request with its own bytes. NATS_URL, NATS_CREDS, SUBJECT say where.
import { readFile } from 'node:fs/promises';
import { connect, credsAuthenticator } from '@nats-io/transport-node';

const { NATS_URL, NATS_CREDS, SUBJECT } = process.env;
const connection = await connect({
  servers: NATS_URL,
  name: 'bench-echo',
  noAsyncTraces: true,
  authenticator: credsAuthenticator(await readFile(NATS_CREDS)),
});
connection.subscribe(SUBJECT, { queue: 'bench', callback: (_error, message) => void message.respond(message.data) });
await connection.flush();
process.send?.('ready');
process.on('disconnect', () => process.exit(0));
