// Jest's global set-up: a run of all tests begins with no records, so that nothing of an earlier run counts.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export const marker = (rootDir) => join(rootDir, 'coverage', 'shown', 'full-run.json');
export const isFullRun = ({ testPathPatterns, testNamePattern, onlyChanged, onlyFailures, shard }) =>
  !testPathPatterns.isSet?.() && !testNamePattern && !onlyChanged && !onlyFailures && !shard;

export default function begin(globalConfig) {
  const file = marker(globalConfig.rootDir);
  if (!isFullRun(globalConfig)) return;
  rmSync(join(file, '..'), { recursive: true, force: true });
  mkdirSync(join(file, '..'), { recursive: true });
}

export function end(globalConfig) {
  if (isFullRun(globalConfig)) writeFileSync(marker(globalConfig.rootDir), JSON.stringify({ endedAt: new Date().toISOString() }));
}
