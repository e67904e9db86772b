// Who asks whom, who hears whom, who works for whom: one Mermaid picture read off services.ts.
import { services } from './contracts.mjs';

const ARROWS = { rpc: '-->', event: '-.->', job: '==>', signal: '-.->' };
const WORDS = { rpc: ['call', 'calls'], event: ['event', 'events'], job: ['job', 'jobs'], signal: ['signal', 'signals'] };

/** `from kind to` → how many contracts; a question points at who answers, everything else at who receives. */
function edges() {
  const counted = new Map();
  const add = (from, kind, to) => {
    if (from === to) return;
    const key = `${from} ${kind} ${to}`;
    counted.set(key, (counted.get(key) ?? 0) + 1);
  };
  for (const [service, use] of Object.entries(services)) {
    for (const contract of use.calls ?? []) add(service, 'rpc', contract.owner);
    for (const list of [use.hears, use.works, use.takes]) for (const contract of list ?? []) add(contract.owner, contract.kind, service);
  }
  return [...counted].sort(([a], [b]) => (a < b ? -1 : 1));
}

export function systemPicture() {
  const names = Object.keys(services).sort();
  const lines = edges().map(([key, count]) => {
    const [from, kind, to] = key.split(' ');
    return `  ${from} ${ARROWS[kind]}|${count} ${WORDS[kind][count === 1 ? 0 : 1]}| ${to}`;
  });
  return [
    '%% Made by `npm run gen` from libs/contracts/src/services.ts.',
    'flowchart LR',
    ...names.map((name) => `  ${name}[${name}]`),
    ...lines,
    '',
  ].join('\n');
}
