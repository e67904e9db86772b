import { openDatabase } from '@ambit/db';
import { startNats, startPostgres, startService, type TestNats } from '@ambit/testing';
import { randomBytes } from 'node:crypto';
import { BrokerConfig } from '../src/config.js';
import { McpBrokerModule } from '../src/mcp-broker.module.js';

/** The service in this process, on servers of its own; peers are what a test makes of `nats`. */
export interface BrokerAlone {
  readonly nats: TestNats;
  /** Ends the service, then what it stands on; give it first what stands on the servers too. */
  stop(...first: readonly (() => Promise<unknown> | unknown)[]): Promise<void>;
}

/** 32 random bytes. */
export const hex = (): string => randomBytes(32).toString('hex');

/** `before` runs once NATS is there, and before the service does. */
export async function startBroker(
  before: (nats: TestNats) => Promise<void> | void,
  environment: Readonly<Record<string, string>> = {},
): Promise<BrokerAlone> {
  const [nats, postgres] = await Promise.all([startNats(), startPostgres()]);
  await before(nats);
  const broker = await startService('mcp-broker', McpBrokerModule, {
    nats,
    postgres,
    config: BrokerConfig,
    database: openDatabase,
    environment: { AMBIT_SEALING_KEY: hex(), ...environment },
  });
  return {
    nats,
    stop: async (...first) => {
      await broker.close();
      for (const end of first) await end();
      await postgres.stop();
      await nats.stop();
    },
  };
}
