import { availableParallelism } from 'node:os';

// Tests run on the sources, as ES modules; the condition makes the workspace's packages resolve to src.
export default {
  testEnvironment: 'node',
  testEnvironmentOptions: { customExportConditions: ['ambit-source', 'node', 'node-addons'] },
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '^.+\\.ts$': ['@swc/jest', { swcrc: true }] },
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  testMatch: ['<rootDir>/{libs,apps,test,examples}/**/*.test.ts'],
  // Records of what the tests show (requirements, faults); a run of all tests begins with none.
  globalSetup: './tools/shown/setup.mjs',
  globalTeardown: './tools/shown/teardown.mjs',
  modulePathIgnorePatterns: ['/dist/'],
  // Most of a scenario's time is waiting for processes to start, leases to lapse, messages to come again: two cores carry two of them.
  maxWorkers: Math.min(4, Math.max(2, availableParallelism() - 1)),
  // A container starts in seconds on a busy machine, not in Jest's five.
  testTimeout: 60_000,
  workerIdleMemoryLimit: '1GB',
};
