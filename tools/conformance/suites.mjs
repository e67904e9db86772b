// Which suites are run against the edge as a server and the broker as a client, and what of each is known not to pass, with the reason.

/** Nothing here is a stream that has to be taken up again: a call that takes long is one request, and goes on where the client asks again for it. */
const POLLING =
  'the call is answered at once and with JSON, so that no stream is there to be closed and polled; the suite then has nothing to check';
const TASKS = 'the tasks extension is neither declared nor served; the suite does not score it';
const HEADERS = 'arguments mirrored into headers are pending in the suite, which does not score them; no tool here declares any';
const ROOTS = 'the roots that servers are told of are the policy’s, never a client’s folders, so that no client is asked for them';

const tasks = [
  ...['capability-negotiation', 'dispatch-and-envelope', 'lifecycle', 'mrtr-composition', 'mrtr-input', 'request-headers'],
  ...['request-state-removal', 'required-task-error', 'status-notifications', 'wire-fields'],
].map((name) => [`tasks-${name}`, TASKS]);

/** The skills extension is no part of a revision's requirements: its scenarios are asked for one by one. */
const skills = ['enumeration', 'manifest', 'directory'].map((name) => ({
  name: `0.2.0-alpha.12 skills-${name}`,
  version: '0.2.0-alpha.12',
  args: ['--scenario', `sep-2640-skills-${name}`, '--spec-version', '2026-07-28', '--force'],
  baseline: {},
}));

export const SUITES = [
  { name: '0.1.16 all', version: '0.1.16', args: ['--suite', 'all'], baseline: { 'server-sse-polling': POLLING } },
  {
    name: '0.2.0-alpha.12 2025-11-25',
    version: '0.2.0-alpha.12',
    args: ['--requirements', '2025-11-25'],
    baseline: { 'server-sse-polling': POLLING },
  },
  {
    name: '0.2.0-alpha.12 2026-07-28',
    version: '0.2.0-alpha.12',
    args: ['--requirements', '2026-07-28'],
    baseline: {
      ...Object.fromEntries(tasks),
      'http-custom-header-server-validation': HEADERS,
      'input-required-result-basic-list-roots': ROOTS,
      'input-required-result-multiple-input-requests': ROOTS,
    },
  },
  ...skills,
];

const NO_DOCUMENT = 'an issuer that publishes no document cannot say that it takes PKCE, and without that nobody is signed in';
const OTHER_ISSUER =
  'the authorization server of this version of the suite calls itself another issuer than it is asked as, and is not believed';
const ASSERTIONS = 'tokens for the assertions of an identity provider are an extension, which is not built';
const PROOFS = 'tokens that are bound to a key (DPoP) are an extension, which is not built';
const WORKLOADS = 'tokens for the identity of a workload are an extension, which is not built';
const extensions = {
  'auth/enterprise-managed-authorization': ASSERTIONS,
  'auth/dpop': PROOFS,
  'auth/dpop-nonce': PROOFS,
  'auth/wif-jwt-bearer': WORKLOADS,
};

/** `scenarios`: how many there are, since one that did not run at all would be missed by nobody. */
export const CLIENT_SUITES = [
  {
    name: '0.1.16 all',
    version: '0.1.16',
    args: ['--suite', 'all'],
    scenarios: 26,
    baseline: {
      'auth/2025-03-26-oauth-metadata-backcompat': OTHER_ISSUER,
      'auth/2025-03-26-oauth-endpoint-fallback': NO_DOCUMENT,
      'auth/cross-app-access-complete-flow': ASSERTIONS,
    },
  },
  {
    name: '0.2.0-alpha.12 2025-11-25',
    version: '0.2.0-alpha.12',
    args: ['--requirements', '2025-11-25'],
    scenarios: 25,
    baseline: extensions,
  },
  {
    name: '0.2.0-alpha.12 2026-07-28',
    version: '0.2.0-alpha.12',
    args: ['--requirements', '2026-07-28'],
    scenarios: 39,
    baseline: extensions,
  },
  ...['no-prefetch', 'verify-digest', 'verify-size', 'verify-frontmatter'].map((name) => ({
    name: `0.2.0-alpha.12 skills-${name}`,
    version: '0.2.0-alpha.12',
    args: ['--scenario', `sep-2640-client-${name}`, '--spec-version', '2026-07-28', '--force'],
    scenarios: 1,
    baseline: {},
  })),
];
