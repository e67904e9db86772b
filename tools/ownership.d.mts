/** See ownership.mjs. */
export function problemsOf(
  file: { readonly app: string; readonly text: string },
  world: { readonly contracts: object; readonly tables: ReadonlyMap<string, string> },
): string[];
export function ownershipProblems(): Promise<{ readonly files: number; readonly problems: string[] }>;
