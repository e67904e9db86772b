import { buckets, pattern, streams, WORKER_SERVICES, WORKER_SIGNALS, type Contract } from '@ambit/contracts';
import type { AccountBody, AccountExport, AccountImport } from './claims.js';

export const ACCOUNT = { system: 'SYS', services: 'AMBIT', workers: 'WORKERS' } as const;

const UNLIMITED = -1;
const limits = {
  subs: UNLIMITED,
  data: UNLIMITED,
  payload: UNLIMITED,
  conn: UNLIMITED,
  leaf: 0,
  imports: UNLIMITED,
  exports: UNLIMITED,
  wildcards: true,
  disallow_bearer: true,
};
const jetstreamLimits = {
  mem_storage: UNLIMITED,
  disk_storage: UNLIMITED,
  streams: UNLIMITED,
  consumer: UNLIMITED,
  max_ack_pending: UNLIMITED,
};
const NANOSECONDS = 1_000_000;
// A request's way back must outlive the request's own time by what the network may add.
const RESPONSE_MARGIN_MS = 30_000;

/** What a worker of any agent may publish: contracts marked `audience: 'worker'` that a service answers or hears. */
export function workerContracts(contracts: readonly Contract[]): readonly Contract[] {
  return contracts.filter(
    (contract) => (contract.kind === 'rpc' || contract.kind === 'signal') && contract.audience === 'worker' && contract.owner !== 'worker',
  );
}

function exportsToWorkers(contracts: readonly Contract[]): readonly AccountExport[] {
  const runs = streams.runs.name;
  const snapshots = `KV_${buckets.snapshots.name}`;
  return [
    ...workerContracts(contracts).map((contract): AccountExport => ({
      name: contract.subject,
      subject: pattern(contract),
      type: 'service',
      response_type: 'Singleton',
      ...(contract.kind === 'rpc' ? { response_threshold: (contract.timeoutMs + RESPONSE_MARGIN_MS) * NANOSECONDS } : {}),
    })),
    { name: 'next run', subject: `$JS.API.CONSUMER.MSG.NEXT.${runs}.*`, type: 'service', response_type: 'Stream' },
    { name: 'acknowledge run', subject: `$JS.ACK.${runs}.>`, type: 'service', response_type: 'Singleton' },
    { name: 'read snapshot', subject: `$JS.API.DIRECT.GET.${snapshots}.>`, type: 'service', response_type: 'Singleton' },
    { name: 'signals to workers', subject: WORKER_SIGNALS, type: 'stream' },
  ];
}

const exportsToServices: readonly AccountExport[] = [
  {
    name: 'tools of workers',
    subject: WORKER_SERVICES,
    type: 'service',
    response_type: 'Singleton',
    response_threshold: 3_600_000 * NANOSECONDS,
  },
];

function importAll(exported: readonly AccountExport[], account: string): readonly AccountImport[] {
  return exported.map(({ name, subject, type }) => ({ name, subject, type, account }));
}

/** The services' account: JetStream, and towards the workers exactly what their contracts say. */
export function servicesAccount(contracts: readonly Contract[], workersAccountKey: string): AccountBody {
  return {
    type: 'account',
    limits: { ...limits, ...jetstreamLimits },
    signing_keys: [],
    exports: exportsToWorkers(contracts),
    imports: importAll(exportsToServices, workersAccountKey),
  };
}

/** The workers' account: no JetStream of its own; `signingKey` is the public key that admin-api signs worker users with. */
export function workersAccount(
  contracts: readonly Contract[],
  keys: { readonly servicesAccountKey: string; readonly signingKey: string },
): AccountBody {
  return {
    type: 'account',
    limits,
    signing_keys: [keys.signingKey],
    exports: exportsToServices,
    imports: importAll(exportsToWorkers(contracts), keys.servicesAccountKey),
  };
}

/** The servers' own account, with their usual read-only exports left out: nobody imports them. */
export function systemAccount(): AccountBody {
  return { type: 'account', limits, signing_keys: [], exports: [], imports: [] };
}

/** `account` with the users of these public keys refused when their JWT was issued at or before `atSeconds`. */
export function withRevocations(account: AccountBody, userKeys: readonly string[], atSeconds: number): AccountBody {
  const added = Object.fromEntries(userKeys.map((key) => [key, atSeconds]));
  return { ...account, revocations: { ...account.revocations, ...added } };
}
