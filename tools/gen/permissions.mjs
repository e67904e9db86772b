// The outer wall as it is built: what crosses between the two NATS accounts, and what one worker's connection may do.
import { ACCOUNT, servicesAccount, workerPermissions } from '@ambit/identity';
import { allContracts } from './contracts.mjs';
import { HEADER, table } from './markdown.mjs';

const code = (value) => `\`${value}\``;
const contracts = allContracts().map(({ contract }) => contract);
const summaries = new Map(contracts.map(({ subject, summary }) => [subject, summary]));

/** `{pub, sub, resp}` as a table, one subject a row. */
function permissionsTable({ pub = {}, sub = {}, resp }) {
  const rows = [
    ...(pub.allow ?? []).map((subject) => ['may publish', code(subject)]),
    ...(pub.deny ?? []).map((subject) => ['may not publish', code(subject)]),
    ...(sub.allow ?? []).map((subject) => ['may subscribe', code(subject)]),
    ...(sub.deny ?? []).map((subject) => ['may not subscribe', code(subject)]),
    ...(resp === undefined ? [] : [['may answer', `${resp.max} ${resp.max === 1 ? 'message' : 'messages'} a request`]]),
  ];
  return table(['', 'Subject'], rows);
}

export function permissionsPage() {
  const { exports: toWorkers, imports: fromWorkers } = servicesAccount(contracts, 'WORKERS');
  return [
    HEADER,
    '# NATS accounts and permissions\n',
    `Services live in the account \`${ACCOUNT.services}\`, workers in \`${ACCOUNT.workers}\`. Only what stands here crosses between them.\n`,
    '## What workers reach\n',
    table(
      ['What', 'Subject', 'As', 'Answers'],
      toWorkers.map(({ name, subject, type, response_type }) => [summaries.get(name) ?? name, code(subject), type, response_type ?? '']),
    ),
    '## What services reach\n',
    table(
      ['What', 'Subject', 'As'],
      fromWorkers.map(({ name, subject, type }) => [name, code(subject), type]),
    ),
    '## One worker\n',
    'The rights in the JWT of a credential `NAME` of the agent `AGENT` for the pool `POOL`: no wildcard stands before the agent.\n',
    permissionsTable(workerPermissions(contracts, { agentId: 'AGENT', credentialName: 'NAME', pools: ['POOL'] })),
  ].join('\n');
}
