import { digestOf, targetScope, type GateCode, type PreparedFacts } from '@ambit/capability';
import type { PreparedTarget } from '@ambit/contracts';

/** What the gates have to know of a call that its worker prepared. */
export function factsOf(prepared: PreparedTarget): PreparedFacts {
  const scope = targetScope(prepared);
  const { argv, command, paths } = prepared;
  return {
    outsideWorkspace: scope !== 'inside',
    protectedPath: scope === 'closed',
    command: command ?? (argv.length === 0 ? null : argv.join(' ')),
    paths,
    digest: digestOf(prepared),
  };
}

/** The same of a call that cannot be carried out, so that nobody need be asked about it. */
export function unable(code: GateCode, data: unknown): PreparedFacts {
  return { outsideWorkspace: true, protectedPath: false, command: null, problem: { code, data } };
}
