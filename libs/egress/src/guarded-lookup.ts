import { lookup as resolve, type LookupAddress } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';

/** What a connection to a closed address fails with; its `code` is `AMBIT_EGRESS_REFUSED`. */
function egressRefused(host: string): Error {
  return Object.assign(
    new Error(`Connections to ${host} are not allowed here; an administrator can allow its address range with AMBIT_EGRESS_ALLOW`),
    { code: 'AMBIT_EGRESS_REFUSED' },
  );
}

/** Throws what a connection would fail with where a URL's host is a closed address: an address is not looked up, so nothing else judges it. */
export function requireOpen({ hostname }: URL, allows: (address: string) => boolean): void {
  const host = hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0 && !allows(host)) throw egressRefused(host);
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
