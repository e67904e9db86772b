import type { Principal } from '@ambit/contracts';
import { UsageError } from './usage-error.js';

const KINDS: Readonly<Record<string, Principal['kind']>> = { user: 'person', app: 'application', worker: 'worker', system: 'system' };

/** The principal that a person names, as in `user:alice`. */
export function principalOf(id: string): Pick<Principal, 'id' | 'kind'> {
  const kind = KINDS[id.split(':')[0] ?? ''];
  if (kind === undefined || !/^\w+:\S+$/.test(id)) throw new UsageError(`"${id}" is nobody; write user:<id>, app:<id> or worker:<id>.`);
  return { id, kind };
}
