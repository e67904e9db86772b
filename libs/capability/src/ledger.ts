import { byCodeUnit } from './canonical.js';
import type { CompositionReason, ReasonCode } from './compose-input.js';
import { fieldsConsulted, filterVerdicts, type FilterVerdict, type Filterable, type Subject, type SubjectField } from './filters.js';

export type Candidate = Pick<CompositionReason, 'kind' | 'name' | 'owner' | 'slot'>;

const FILTER_CODES = { platforms: 'FILTERED_PLATFORM', scopes: 'FILTERED_SCOPE', permissions: 'FILTERED_PERMISSION' } as const;

/** Keeps the reason of every candidate of one composition, and what of the subject was read on the way. */
export class Ledger {
  private readonly entries: CompositionReason[] = [];
  private readonly consulted = new Set<SubjectField>();

  constructor(private readonly subject: Subject | null) {}

  in(candidate: Candidate, detail: string, filters: FilterVerdict[] = []): void {
    this.entries.push({ ...candidate, included: true, code: 'INCLUDED', detail, filters });
  }

  /** Always answers false, so that `return ledger.out(…)` ends a check. */
  out(candidate: Candidate, code: ReasonCode, detail: string): false {
    this.entries.push({ ...candidate, included: false, code, detail, filters: [] });
    return false;
  }

  /** The verdicts of a candidate's filters where all pass; null, with the reason noted, where one does not. */
  filter(candidate: Candidate, capability: Filterable): FilterVerdict[] | null {
    for (const field of fieldsConsulted(capability)) this.consulted.add(field);
    const verdicts = filterVerdicts(capability, this.subject);
    const refused = verdicts.find((verdict) => verdict.verdict !== 'pass');
    if (refused === undefined) return verdicts;
    this.entries.push({ ...candidate, included: false, code: FILTER_CODES[refused.name], detail: refused.detail, filters: verdicts });
    return null;
  }

  /** All reasons, ordered by kind, name and slot: the same whatever order the candidates came in. */
  reasons(): readonly CompositionReason[] {
    return this.entries.sort(
      (left, right) =>
        byCodeUnit(left.kind, right.kind) ||
        byCodeUnit(left.name, right.name) ||
        byCodeUnit(left.slot, right.slot) ||
        byCodeUnit(left.code, right.code),
    );
  }

  fields(): readonly SubjectField[] {
    return [...this.consulted].sort(byCodeUnit);
  }
}
