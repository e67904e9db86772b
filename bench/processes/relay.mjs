// Hands every request on and brings the answer back: what a gateway costs that decides and records nothing.
import { readFile } from 'node:fs/promises';
import { connect, credsAuthenticator } from '@nats-io/transport-node';

const { NATS_URL, NATS_CREDS, SUBJECT, NEXT } = process.env;
const connection = await connect({
  servers: NATS_URL,
  name: 'bench-relay',
  noAsyncTraces: true,
  authenticator: credsAuthenticator(await readFile(NATS_CREDS)),
});
connection.subscribe(SUBJECT, {
  queue: 'bench',
  callback: async (_error, message) => {
    const answer = await connection.request(NEXT, message.data, { timeout: 30_000 });
    message.respond(answer.data);
  },
});
await connection.flush();
process.send?.('ready');
process.on('disconnect', () => process.exit(0));
