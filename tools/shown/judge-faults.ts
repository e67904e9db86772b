/** A contract as far as this comparison looks at it. */
export interface Declaring {
  readonly kind: string;
  readonly subject: string;
  readonly owner: string;
  readonly errors?: Readonly<Record<string, unknown>>;
}

/** An HTTP route as far as this comparison looks at it. */
export interface HttpDeclaring {
  readonly method: string;
  readonly path: string;
  readonly errors?: Readonly<Record<string, unknown>>;
}

/** A fault as a test file recorded it: `subject` is the contract's, or method and path for `http`. */
export interface SeenFault {
  readonly file: string;
  readonly subject: string;
  readonly code: string;
  readonly where: 'reply' | 'result' | 'run' | 'http';
}

export interface Catalogue {
  readonly contracts: readonly Declaring[];
  /** What any call may answer with. */
  readonly platformFaults: Readonly<Record<string, unknown>>;
  /** What may stand in the results of a batch. */
  readonly refusals: Readonly<Record<string, unknown>>;
  /** What may stand in the `fault` of a run. */
  readonly runFaults: Readonly<Record<string, unknown>>;
  readonly routes: readonly HttpDeclaring[];
  /** What the HTTP API answers with before any route. */
  readonly httpFaults: Readonly<Record<string, unknown>>;
}

export interface OwnedCode {
  readonly owner: string;
  readonly code: string;
}

// Nobody can be asked to provoke a platform code from every call; one is enough for each.
const ANY_CALL = 'any call';
const RESULTS = 'results of a batch';
const RUNS = 'runs';
const ANY_REQUEST = 'any HTTP request';
const HTTP_OWNER = 'admin-api';

/** Holds declared faults against received ones. A declared one is an owner and a code: its contracts may share it. */
export function judgeFaults(catalogue: Catalogue, seen: readonly SeenFault[]) {
  const { contracts, platformFaults, refusals, runFaults, routes, httpFaults } = catalogue;
  const rpcs = new Map(contracts.filter(({ kind }) => kind === 'rpc').map((contract) => [contract.subject, contract]));
  const declared = new Map<string, OwnedCode>();
  const declare = (owner: string, codes: Readonly<Record<string, unknown>>): void => {
    for (const code of Object.keys(codes)) declared.set(`${owner} ${code}`, { owner, code });
  };
  for (const { owner, errors } of rpcs.values()) declare(owner, errors ?? {});
  declare(ANY_CALL, platformFaults);
  // Most faults of routes are those of the contracts behind them; the rest are the HTTP API's own.
  const ofContracts = new Set([...declared.values()].map(({ code }) => code));
  for (const { errors = {} } of routes)
    declare(HTTP_OWNER, Object.fromEntries(Object.entries(errors).filter(([code]) => !ofContracts.has(code))));
  declare(ANY_REQUEST, httpFaults);
  declare(RESULTS, refusals);
  declare(RUNS, runFaults);

  const mayComeFrom = ({ subject, where }: SeenFault): Readonly<Record<string, unknown>> => {
    switch (where) {
      case 'reply':
        return rpcs.get(subject)?.errors ?? {};
      case 'result':
        return refusals;
      case 'run':
        return runFaults;
      case 'http':
        return { ...httpFaults, ...routeOf(routes, subject)?.errors };
    }
  };
  const received = new Set<string>();
  const undeclared = new Map<string, SeenFault>();
  for (const fault of seen) {
    const { subject, code, where } = fault;
    const isOfPlatform = Object.hasOwn(platformFaults, code);
    if (where === 'result') received.add(`${RESULTS} ${code}`);
    else if (where === 'run') received.add(`${RUNS} ${code}`);
    else if (isOfPlatform) received.add(`${ANY_CALL} ${code}`);
    else if (where === 'reply') received.add(`${rpcs.get(subject)?.owner} ${code}`);
    // Over HTTP a fault comes from whichever service stands behind; the code alone tells which fault it is.
    else for (const [key, { owner, code: name }] of declared) if (name === code && owner !== RESULTS && owner !== RUNS) received.add(key);
    if (!isOfPlatform && !Object.hasOwn(mayComeFrom(fault), code)) undeclared.set(`${subject} ${code}`, fault);
  }
  return {
    declared: declared.size,
    missing: [...declared].filter(([key]) => !received.has(key)).map(([, fault]) => fault),
    undeclared: [...undeclared.values()],
  };
}

/** The route of `METHOD /path`; literal parts win over parameters, as they do where requests are served. */
function routeOf(routes: readonly HttpDeclaring[], at: string): HttpDeclaring | undefined {
  const [method, path = ''] = at.split(' ');
  const given = path.split('/');
  const parameters = (route: HttpDeclaring): number => route.path.split('{').length;
  return routes
    .filter((route) => {
      const parts = route.path.split('/');
      return (
        route.method === method && parts.length === given.length && parts.every((part, n) => part.startsWith('{') || part === given[n])
      );
    })
    .sort((left, right) => parameters(left) - parameters(right))[0];
}
