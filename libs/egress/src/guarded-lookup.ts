import { lookup as resolve, type LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';

/** What a connection to a closed address fails with; its `code` is `AMBIT_EGRESS_REFUSED`. */
export function egressRefused(host: string): Error {
  return Object.assign(
    new Error(`Connections to ${host} are not allowed here; an administrator can allow its address range with AMBIT_EGRESS_ALLOW`),
    { code: 'AMBIT_EGRESS_REFUSED' },
  );
}

/** Resolves names for node:http, and gives only addresses that are allowed: no name can lead to a closed one, whatever it meant before. */
export function guardedLookup(allows: (address: string) => boolean): LookupFunction {
  return (hostname, wanted, callback) => {
    resolve(hostname, { ...wanted, all: true }, (error, found) => {
      const addresses: LookupAddress[] = error === null ? found.filter((entry) => allows(entry.address)) : [];
      const [first] = addresses;
      if (error !== null) callback(error, []);
      else if (first === undefined) callback(egressRefused(hostname), []);
      else if (wanted.all === true) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}
