// The catalogue of declared faults: code, status, retry, message, who answers so.
import { allContracts, allRoutes, httpFaults, platformFaults, refusals, runFaults } from './contracts.mjs';
import { HEADER, table } from './markdown.mjs';

/** Code → `{ status, retry, messages, answers }`; throws when two contracts mean different things by one code. */
function faultCatalogue() {
  const codes = new Map();
  const contracts = allContracts().map(({ name, contract }) => ({ name, errors: contract.errors ?? {} }));
  const ofContracts = new Set(contracts.flatMap(({ errors }) => Object.keys(errors)));
  // Most faults of HTTP routes are those of the contracts behind them, and are listed there.
  const routes = allRoutes().map(({ name, route }) => ({
    name,
    errors: Object.fromEntries(Object.entries(route.errors).filter(([code]) => !ofContracts.has(code))),
  }));
  for (const { name, errors } of [...contracts, ...routes]) {
    for (const [code, { status, retry, message }] of Object.entries(errors)) {
      const known = codes.get(code) ?? { status, retry, messages: new Set(), answers: [] };
      if (known.status !== status || known.retry !== retry) {
        throw new Error(
          `${name} declares ${code} as ${status}/${retry}, ${known.answers[0]} as ${known.status}/${known.retry}; one code has one meaning`,
        );
      }
      known.messages.add(message);
      known.answers.push(name);
      codes.set(code, known);
    }
  }
  return codes;
}

const sorted = (entries) => [...entries].sort(([a], [b]) => (a < b ? -1 : 1));

export function faultsPage() {
  const declared = faultCatalogue();
  return [
    HEADER,
    '# Faults\n',
    'A fault is a failure that a caller can act on. `code` and `data` are the API; the message is for a person and may change. `retry: later` says',
    'that the same request may succeed after a while; `never` says that repeating it unchanged cannot help, or may do harm. The status stands in the',
    '`Nats-Service-Error-Code` header, and admin-api answers with it.\n',
    '## From any call\n',
    table(
      ['Code', 'Status', 'Retry', 'Message'],
      sorted(Object.entries(platformFaults)).map(([code, { status, retry, message }]) => [`\`${code}\``, status, retry, message]),
    ),
    '## From the HTTP API, before any route\n',
    table(
      ['Code', 'Status', 'Retry', 'Message'],
      sorted(Object.entries(httpFaults)).map(([code, { status, retry, message }]) => [`\`${code}\``, status, retry, message]),
    ),
    '## Declared by a contract\n',
    table(
      ['Code', 'Status', 'Retry', 'Message', 'Who answers so'],
      sorted(declared).map(([code, { status, retry, messages, answers }]) => [
        `\`${code}\``,
        status,
        retry,
        [...messages].join(' / '),
        answers.map((answer) => `\`${answer}\``).join(', '),
      ]),
    ),
    '## In the results of a batch\n',
    'Why one call of a `batch.execute` was refused, or how it failed. The reply itself is a success; these stand in `results[].fault`.\n',
    table(
      ['Code', 'Status', 'Retry', 'Message'],
      sorted(Object.entries(refusals)).map(([code, { status, retry, message }]) => [`\`${code}\``, status, retry, message]),
    ),
    '## Of a run that failed\n',
    'These stand in the `fault` of the run. The message of `WORKER_FAILED` and `LIMIT_REACHED` is the worker’s reason, where it gave one.\n',
    table(
      ['Code', 'Message'],
      sorted(Object.entries(runFaults)).map(([code, { message }]) => [`\`${code}\``, message]),
    ),
  ].join('\n');
}
