// Reads the contract values as the built package exports them. Generators take what this returns and nothing else.
import * as exported from '@ambit/contracts';

const KINDS = new Set(['rpc', 'event', 'job', 'signal']);
const isContract = (value) => typeof value === 'object' && value !== null && KINDS.has(value.kind) && typeof value.subject === 'string';

/** Every contract once, as `{ name: 'skillStore.getSkill', contract }`, sorted by subject. */
export function allContracts() {
  const found = new Map();
  for (const [group, value] of Object.entries(exported)) {
    if (typeof value !== 'object' || value === null) continue;
    for (const [key, contract] of Object.entries(value)) {
      if (isContract(contract) && !found.has(contract.subject)) found.set(contract.subject, { name: `${group}.${key}`, contract });
    }
  }
  return [...found.values()].sort((a, b) => (a.contract.subject < b.contract.subject ? -1 : 1));
}

/** Every HTTP route, as `{ name: 'httpApi.getAgent', route }`. */
export function allRoutes() {
  return Object.entries(exported.httpApi).map(([key, route]) => ({ name: `httpApi.${key}`, route }));
}

/** The one page of the system: service name → lists of contracts (`answers`, `calls`, `emits`, `hears`, …). */
export const services = exported.services ?? {};
export const { platformFaults, httpFaults, refusals, runFaults, streams, buckets, objectStores } = exported;
