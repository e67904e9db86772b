import { describe, expect, it } from '@jest/globals';
import { Egress } from './egress.js';

describe('addresses', () => {
  it.each([
    '127.0.0.1',
    '10.1.2.3',
    '192.168.1.1',
    '172.16.0.1',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
    '::1',
    'fe80::1',
    'fd00::1',
    '::ffff:127.0.0.1',
    '::ffff:a9fe:a9fe',
    'no address',
  ])('%s is closed', (address) => {
    expect(new Egress([]).allows(address)).toBe(false);
  });
  it('public ones are open, and so is what an administrator opens, alone', () => {
    const egress = new Egress(['127.0.0.0/8', '10.1.0.0/16']);
    for (const open of ['93.184.216.34', '2606:2800:220:1::1', '127.0.0.1', '::ffff:127.0.0.1', '10.1.9.9'])
      expect(egress.allows(open)).toBe(true);
    for (const closed of ['10.2.0.1', '169.254.169.254', '::1']) expect(egress.allows(closed)).toBe(false);
    expect(egress.problemOf('localhost')).toBeUndefined();
    expect(new Egress([]).problemOf('localhost')).toContain('AMBIT_EGRESS_ALLOW');
    expect(new Egress([]).problemOfUrl('https://hooks.example/a?b', 'sign')).toBeUndefined();
    for (const url of ['https://user@hooks.example/', 'https://user:pass@example.com/'])
      expect(new Egress([]).problemOfUrl(url, 'sign')).toBe('A URL may not hold a name or password; sign');
    for (const url of ['http://[::1]:80/', 'http://localhost/', 'http://169.254.169.254/mcp'])
      expect(new Egress([]).problemOfUrl(url, 'sign')).toContain('AMBIT_EGRESS_ALLOW');
    expect(() => new Egress(['everything'])).toThrow('no address or range');
  });
});
