import { byCodeUnit, canonicalJson, inCanonicalOrder, NotCanonical } from './canonical.js';
import type { CompositionInput } from './compose-input.js';
import { nameProblem, type ToolCandidate } from './compose-tools.js';
import { excerptOf } from './fit.js';
import { matchesGlob } from './glob.js';
import type { Ledger } from './ledger.js';
import type { CataloguePolicy } from './policy.js';
import type { SnapshotDeferred, SnapshotTool } from './snapshot.js';

export interface Settled {
  readonly tools: SnapshotTool[];
  readonly deferred: SnapshotDeferred[];
}

/** Settles who has which name, applies the agent's aliases, and answers the tools of the record, by name, and those that wait to be loaded. */
export function settleTools(
  candidates: readonly ToolCandidate[],
  { policy, ledger, input }: { readonly policy: CataloguePolicy; readonly ledger: Ledger; readonly input: CompositionInput },
): Settled {
  const byName = new Map<string, ToolCandidate[]>();
  for (const candidate of candidates.flatMap((one) => storable(one, ledger) ?? [])) {
    const rivals = byName.get(candidate.tool.name);
    if (rivals === undefined) byName.set(candidate.tool.name, [candidate]);
    else rivals.push(candidate);
  }
  const winners = new Map<string, ToolCandidate>();
  for (const [name, rivals] of byName) {
    const winner = winnerOf(rivals, ledger);
    if (winner !== null) winners.set(name, winner);
  }
  const names = aliasesOf(policy.aliases, { winners, ledger });
  const named = [...winners.values()].map((winner) => ({ ...winner, name: names.get(winner.tool.name) ?? winner.tool.name }));
  const waits = named.filter(({ name, tool }) => isDeferred(name, tool, { policy, input }));
  const waiting = new Set(waits.map(({ name }) => name));
  const tools: SnapshotTool[] = [];
  for (const { candidate, filters, tool, name, needsDeferred } of named) {
    const seen = { ...candidate, name };
    if (waiting.has(name)) ledger.out(seen, 'DEFERRED', 'the session has not loaded it; tool_load does');
    else if (needsDeferred === true && waiting.size === 0) ledger.out(seen, 'NOTHING_DEFERRED', 'no tool waits to be loaded');
    else {
      const alias = name === tool.name ? '' : `, as the agent's alias of ${tool.name}`;
      ledger.in(seen, `${describe(tool)}${alias}`, filters);
      tools.push(name === tool.name ? tool : { ...tool, name });
    }
  }
  const inOrder = (left: { readonly name: string }, right: { readonly name: string }) => byCodeUnit(left.name, right.name);
  const deferred = waits.map(({ name, tool }) => ({ name, description: excerptOf(tool.description, DEFERRED_BYTES) }));
  return { tools: tools.sort(inOrder), deferred: deferred.sort(inOrder) };
}

/** Of a deferred tool's description, what it is found by. */
const DEFERRED_BYTES = 300;

/** What is built in, and what nobody could load, is always there. */
function isDeferred(
  name: string,
  { qualifiedName, target }: SnapshotTool,
  { policy, input }: { readonly policy: CataloguePolicy; readonly input: CompositionInput },
): boolean {
  if (target.kind === 'builtin' || input.agent.kind === 'acp' || input.session.loadedTools?.includes(name) === true) return false;
  return policy.deferredTools.some((glob) => matchesGlob(glob, name) || matchesGlob(glob, qualifiedName));
}

const describe = (tool: SnapshotTool) => `${tool.exposure}, effect ${tool.effect}`;

/** The candidate with its schemas read once and in canonical order; null, with the reason noted, where they have no canonical form. */
function storable(candidate: ToolCandidate, ledger: Ledger): ToolCandidate | null {
  const { tool } = candidate;
  try {
    const inputSchema = inCanonicalOrder(tool.inputSchema);
    const outputSchema = inCanonicalOrder(tool.outputSchema);
    inCanonicalOrder(tool.description);
    return { ...candidate, tool: { ...tool, inputSchema, outputSchema } };
  } catch (error) {
    if (!(error instanceof NotCanonical)) throw error;
    ledger.out(candidate.candidate, 'SCHEMA_INVALID', error.message);
    return null;
  }
}

function winnerOf(rivals: readonly ToolCandidate[], ledger: Ledger): ToolCandidate | null {
  const [only] = rivals;
  if (only !== undefined && rivals.length === 1) return only;
  const best = Math.min(...rivals.map((rival) => rival.rank));
  const first = rivals.filter((rival) => rival.rank === best);
  const same = new Set(first.map((rival) => canonicalJson(rival.tool))).size === 1;
  const winner = same ? (first[0] ?? null) : null;
  for (const rival of rivals) {
    if (rival === winner) continue;
    ledger.out(
      rival.candidate,
      'DUPLICATE_NAME',
      winner === null
        ? 'several tools claim this name, and none of them wins'
        : rival.rank === best
          ? 'listed twice in the same words'
          : 'a built-in tool has this name',
    );
  }
  return winner;
}

interface AliasContext {
  readonly winners: ReadonlyMap<string, ToolCandidate>;
  readonly ledger: Ledger;
}

/** Which tool is shown under which alias. An alias that is taken or reserved names nothing, and says so. */
function aliasesOf(aliases: Readonly<Record<string, string>>, { winners, ledger }: AliasContext): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const [alias, tool] of Object.entries(aliases).sort(([left], [right]) => byCodeUnit(left, right))) {
    const candidate = { kind: 'alias' as const, name: alias, owner: 'user', slot: `user/aliases/${alias}` };
    const problem = nameProblem(alias);
    if (problem !== null) ledger.out(candidate, problem.code, problem.detail);
    else if (winners.has(alias)) ledger.out(candidate, 'ALIAS_TAKEN', 'another tool has this name');
    else if (!winners.has(tool)) ledger.out(candidate, 'ALIAS_UNKNOWN', `${tool} is not part of this run`);
    else if (names.has(tool)) ledger.out(candidate, 'ALIAS_TAKEN', `${tool} is already called ${names.get(tool)}`);
    else {
      names.set(tool, alias);
      ledger.in(candidate, `stands for ${tool}`);
    }
  }
  return names;
}
