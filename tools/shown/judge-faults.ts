/** A contract as far as this comparison looks at it. */
export interface Declaring {
  readonly kind: string;
  readonly subject: string;
  readonly owner: string;
  readonly errors?: Readonly<Record<string, unknown>>;
}

/** A fault as a test file recorded it: `subject` is the contract's, or the path for `http`. */
export interface SeenFault {
  readonly file: string;
  readonly subject: string;
  readonly code: string;
  readonly where: 'reply' | 'result' | 'http';
}

export interface Catalogue {
  readonly contracts: readonly Declaring[];
  /** What any call may answer with. */
  readonly platformFaults: Readonly<Record<string, unknown>>;
  /** What may stand in the results of a batch. */
  readonly refusals: Readonly<Record<string, unknown>>;
}

export interface OwnedCode {
  readonly owner: string;
  readonly code: string;
}

// Nobody can be asked to provoke a platform code from every call; one is enough for each.
const ANY_CALL = 'any call';
const RESULTS = 'results of a batch';

/** Holds declared faults against received ones. A declared one is an owner and a code: its contracts may share it. */
export function judgeFaults(catalogue: Catalogue, seen: readonly SeenFault[]) {
  const { contracts, platformFaults, refusals } = catalogue;
  const rpcs = new Map(contracts.filter(({ kind }) => kind === 'rpc').map((contract) => [contract.subject, contract]));
  const declared = new Map<string, OwnedCode>();
  const declare = (owner: string, codes: Readonly<Record<string, unknown>>): void => {
    for (const code of Object.keys(codes)) declared.set(`${owner} ${code}`, { owner, code });
  };
  for (const { owner, errors } of rpcs.values()) declare(owner, errors ?? {});
  declare(ANY_CALL, platformFaults);
  declare(RESULTS, refusals);
  const codes = new Set([...declared.values()].map(({ code }) => code));

  const received = new Set<string>();
  const undeclared = new Map<string, SeenFault>();
  for (const fault of seen) {
    const { subject, code, where } = fault;
    const contract = rpcs.get(subject);
    const isOfPlatform = Object.hasOwn(platformFaults, code);
    if (where === 'result') received.add(`${RESULTS} ${code}`);
    else if (isOfPlatform) received.add(`${ANY_CALL} ${code}`);
    else if (where === 'reply') received.add(`${contract?.owner} ${code}`);
    // Over HTTP a fault comes from whichever service stands behind; the code alone tells which fault it is.
    else for (const [key, { owner, code: name }] of declared) if (name === code && owner !== RESULTS) received.add(key);
    const isDeclared = where === 'reply' ? isOfPlatform || Object.hasOwn(contract?.errors ?? {}, code) : codes.has(code);
    if (!isDeclared) undeclared.set(`${subject} ${code}`, fault);
  }
  return {
    declared: declared.size,
    missing: [...declared].filter(([key]) => !received.has(key)).map(([, fault]) => fault),
    undeclared: [...undeclared.values()],
  };
}
