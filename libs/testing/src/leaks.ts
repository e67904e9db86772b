import { DeliverPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import { canariesIn, hasCanary } from './canary.js';
import { record } from './records.js';

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'];
const BATCH = 500;

function look(where: string, text: string): void {
  for (const secret of canariesIn(text)) record({ kind: 'leak', where, secret });
}

/** Takes a service's log: every line is searched for planted secrets, those at or above `shown` go to standard output. */
export function searchedLog(name: string, shown: string): { write(line: string): void } {
  const least = LEVELS.indexOf(shown);
  return {
    write: (line) => {
      look(`the log of ${name}`, line);
      const level = /^\{"level":"([a-z]+)"/.exec(line)?.[1] ?? 'fatal';
      if (LEVELS.indexOf(level) >= least) process.stdout.write(line);
    },
  };
}

/** Searches what a service tells of its numbers, where this test file planted a secret. */
export async function searchMetrics(name: string, opsPort: number): Promise<void> {
  if (!hasCanary()) return;
  const response = await fetch(`http://127.0.0.1:${opsPort}/metrics`);
  look(`the metrics of ${name}`, await response.text());
}

/** Searches everything that stands in streams and buckets, where this test file planted a secret. Objects are searched by their chunks. */
export async function searchStored(connection: NatsConnection): Promise<void> {
  if (!hasCanary() || connection.isClosed()) return;
  const manager = await jetstreamManager(connection);
  for await (const { config, state } of manager.streams.list()) {
    if (state.messages === 0 || config.retention === 'workqueue') continue;
    const consumer = await jetstream(connection).consumers.get(config.name, { deliver_policy: DeliverPolicy.All });
    let last = 0;
    while (last < state.last_seq) {
      const messages = await consumer.fetch({ max_messages: BATCH, expires: 1_000 });
      let isEmpty = true;
      for await (const message of messages) {
        isEmpty = false;
        last = message.seq;
        look(`the stream ${config.name}`, `${message.subject} ${message.string()}`);
        if (message.info.pending === 0) last = state.last_seq;
        if (last >= state.last_seq) break;
      }
      if (isEmpty) break;
    }
  }
}
