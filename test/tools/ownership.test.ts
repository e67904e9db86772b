import * as contracts from '@ambit/contracts';
import { expect, it } from '@jest/globals';
import { ownershipProblems, problemsOf } from '../../tools/ownership.mjs';

const tables = new Map([
  ['gatewayCall', 'tool_gateway'],
  ['run', 'session_service'],
]);
const of = (app: string, text: string) => problemsOf({ app, text }, { contracts, tables });

it('each rule names what breaks it', () => {
  expect(of('tool-gateway', "import { x } from '@ambit/session-service';")).toEqual([expect.stringContaining('another app')]);
  expect(of('tool-gateway', "import { x } from '../../session-service/src/lru.js';")).toEqual([expect.stringContaining('another app')]);
  expect(of('tool-gateway', 'await this.db.run.findMany();')).toEqual([expect.stringContaining('the table run of session_service')]);
  expect(of('tool-gateway', 'sql`SELECT 1 FROM "tool_gateway"."call"`')).toEqual([]);
  expect(of('admin-api', 'sql`SELECT 1 FROM "session_service"."run"`')).toEqual([expect.stringContaining('a table of session_service')]);
  expect(of('skill-store', '\nbus.call(sessionService.getRun, { id })')).toEqual([expect.stringMatching(/^2: sends .*run\.get/)]);
  expect(of('skill-store', 'bus.emit(toolGateway.callEnded, {})')).toEqual([expect.stringContaining('emits in services.ts')]);
  expect(of('skill-store', 'open(buckets.snapshots.name)')).toEqual([expect.stringContaining('not among its stores')]);
  expect(of('tool-gateway', 'const bucket = open(buckets.snapshots.name);\nbucket.put(key, value);')).toEqual([
    expect.stringContaining('which it only reads'),
  ]);
});

it('what is an app’s own is no problem', () => {
  expect(
    of('tool-gateway', 'this.bus.call(sessionService.getAuthority, { runId }); this.db.gatewayCall.count(); open(buckets.snapshots.name)'),
  ).toEqual([]);
});

it('the tree keeps them', async () => {
  const { files, problems } = await ownershipProblems();
  expect(problems).toEqual([]);
  expect(files).toBeGreaterThan(100);
});
