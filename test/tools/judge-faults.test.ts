import { describe, expect, it } from '@jest/globals';
import { judgeFaults, type SeenFault } from '../../tools/shown/judge-faults.js';

const catalogue = {
  contracts: [
    { kind: 'rpc', subject: 'rpc.a.get', owner: 'a', errors: { A_UNKNOWN: {} } },
    { kind: 'rpc', subject: 'rpc.a.put', owner: 'a', errors: { A_UNKNOWN: {}, A_TAKEN: {} } },
    { kind: 'rpc', subject: 'rpc.b.get', owner: 'b', errors: { A_UNKNOWN: {} } },
    { kind: 'event', subject: 'evt.a.put', owner: 'a' },
  ],
  platformFaults: { INTERNAL: {} },
  refusals: { TOOL_GONE: {} },
  runFaults: { WORKER_FAILED: {} },
  routes: [
    { method: 'GET', path: '/v1/a/{id}', errors: { A_UNKNOWN: {}, TOKEN_UNKNOWN: {} } },
    { method: 'GET', path: '/v1/a/all', errors: {} },
  ],
  httpFaults: { ROUTE_UNKNOWN: {} },
};
const file = 'x.test.ts';
const seen = (subject: string, code: string, where: SeenFault['where'] = 'reply'): SeenFault => ({ file, subject, code, where });
const all = [
  seen('rpc.a.get', 'A_UNKNOWN'),
  seen('rpc.a.put', 'A_TAKEN'),
  seen('rpc.b.get', 'A_UNKNOWN'),
  seen('rpc.b.get', 'INTERNAL'),
  seen('rpc.a.put', 'TOOL_GONE', 'result'),
  seen('rpc.a.get', 'WORKER_FAILED', 'run'),
  seen('GET /v1/a/7', 'TOKEN_UNKNOWN', 'http'),
  seen('GET /v1/nothing', 'ROUTE_UNKNOWN', 'http'),
];

describe('judgeFaults', () => {
  it('is content when every declared fault of an owner was received once', () => {
    expect(judgeFaults(catalogue, all)).toEqual({ declared: 8, missing: [], undeclared: [] });
  });

  it.each(all)('misses $code of $subject when no test received it', (fault) => {
    const { missing } = judgeFaults(
      catalogue,
      all.filter((other) => other !== fault),
    );
    expect(missing.map(({ code }) => code)).toEqual([fault.code]);
  });

  it('complains of a fault that this very contract does not declare', () => {
    expect(judgeFaults(catalogue, [...all, seen('rpc.a.get', 'A_TAKEN')]).undeclared).toEqual([seen('rpc.a.get', 'A_TAKEN')]);
  });

  it('takes a fault over HTTP for that of any owner', () => {
    const { missing, undeclared } = judgeFaults(catalogue, [seen('GET /v1/a/7', 'A_UNKNOWN', 'http')]);
    expect(missing.map(({ owner, code }) => `${owner} ${code}`)).toEqual([
      'a A_TAKEN',
      'any call INTERNAL',
      'admin-api TOKEN_UNKNOWN',
      'any HTTP request ROUTE_UNKNOWN',
      'results of a batch TOOL_GONE',
      'runs WORKER_FAILED',
    ]);
    expect(undeclared).toEqual([]);
  });

  it.each([
    seen('GET /v1/a/7', 'TEAPOT', 'http'),
    seen('POST /v1/a/7', 'A_UNKNOWN', 'http'),
    seen('GET /v1/a/7/b', 'A_UNKNOWN', 'http'),
    seen('GET /v1/a/all', 'A_UNKNOWN', 'http'),
    seen('rpc.a.get', 'WORKER_FAILED', 'result'),
    seen('rpc.a.get', 'TOOL_GONE', 'run'),
    seen('rpc.a.get', 'ROUTE_UNKNOWN'),
  ])('complains of $code at $where of $subject, where it is not declared', (fault) => {
    expect(judgeFaults(catalogue, [...all, fault]).undeclared).toEqual([fault]);
  });

  it('does not take a declared fault in a result for one in a reply', () => {
    const { missing } = judgeFaults(catalogue, [seen('rpc.a.put', 'A_TAKEN', 'result')]);
    expect(missing.map(({ code }) => code)).toContain('A_TAKEN');
  });
});
