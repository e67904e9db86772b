/** The processes that can own a requirement; `platform` stands for all of them together. */
export type Owner =
  'session-service' | 'tool-gateway' | 'mcp-broker' | 'skill-store' | 'plugin-registry' | 'admin-api' | 'mcp-edge' | 'worker' | 'platform';

/** One thing that Ambit must do, with the statements that a test can show one at a time. */
export interface Requirement {
  readonly title: string;
  readonly owner: Owner;
  readonly behavior: string;
  /** Numbered from 1 without gaps; a number never changes its meaning, so that a citation stays true. */
  readonly clauses: Readonly<Record<number, string>>;
}
