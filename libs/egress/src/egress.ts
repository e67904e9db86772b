import { BlockList, isIP } from 'node:net';

/** What no server of ours lives at unless an administrator says so: ourselves, our neighbours, and where clouds keep credentials. */
const CLOSED = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '::/128',
  '::1/128',
  '64:ff9b::/96',
  'fc00::/7',
  'fe80::/10',
  'ff00::/8',
];

function add(list: BlockList, range: string): void {
  const [address = '', bits] = range.split('/');
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
  if (isIP(address) === 0 || (bits !== undefined && !/^\d{1,3}$/.test(bits)))
    throw new TypeError(`AMBIT_EGRESS_ALLOW: "${range}" is no address or range such as 10.1.0.0/16`);
  if (bits === undefined) list.addAddress(address, family);
  else list.addSubnet(address, Number(bits), family);
}

/** Decides which addresses may be connected to. */
export class Egress {
  private readonly closed = new BlockList();
  private readonly allowed = new BlockList();

  constructor(allowed: readonly string[]) {
    for (const range of CLOSED) add(this.closed, range);
    for (const range of allowed) add(this.allowed, range);
  }

  /** True when a connection to this address may be made. An IPv4 address written as an IPv6 one is judged as what it is: the lists see through it. */
  allows(address: string): boolean {
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (isIP(address) === 0) return false;
    return this.allowed.check(address, family) || !this.closed.check(address, family);
  }

  /** Why a URL may not be called; undefined where it may, as far as it says itself. `instead` says where what sends to it has names and passwords. */
  problemOfUrl(url: string, instead: string): string | undefined {
    const { username, password, hostname } = new URL(url);
    if (username !== '' || password !== '') return `A URL may not hold a name or password; ${instead}`;
    return this.problemOf(hostname.replace(/^\[|\]$/g, ''));
  }

  /** Why a host of a URL may not be called; undefined where it may, or is a name that the connection itself is asked about. */
  problemOf(host: string): string | undefined {
    const address = host === 'localhost' || host.endsWith('.localhost') ? '127.0.0.1' : host;
    if (isIP(address) === 0 || this.allows(address)) return undefined;
    return `${host} is in an address range that is closed here; an administrator can open it with AMBIT_EGRESS_ALLOW`;
  }
}
