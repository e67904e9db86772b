// Set up before each test of a run with mutated gates: the gate that the test's name speaks of is left out while it runs, and no other.
import { beforeEach, expect } from '@jest/globals';
import { writeFileSync } from 'node:fs';

beforeEach(() => {
  const [, gate = ''] = /gate ([a-z-]+):/.exec(expect.getState().currentTestName ?? '') ?? [];
  writeFileSync(process.env.AMBIT_LEFT_OUT, gate);
});
