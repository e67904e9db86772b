export interface ServerConfigInput {
  readonly operatorJwt: string;
  readonly systemAccountKey: string;
  /** Account public key to account JWT. */
  readonly accounts: Readonly<Record<string, string>>;
  /** Where the server keeps account JWTs. On disk, because a server that forgets one at a restart forgets its revocations. */
  readonly resolverFolder: string;
}

/** Lines for nats-server's configuration: who signs, and the accounts to begin with. A newer account JWT that the server has stored stays. */
export function serverConfig(input: ServerConfigInput): string {
  return [
    // A user JWT lists what its holder may do, and is sent on one line when it connects; the server's own limit of 4 KiB is too short.
    'max_control_line: 65536',
    `operator: ${input.operatorJwt}`,
    `system_account: ${input.systemAccountKey}`,
    'resolver {',
    '  type: full',
    `  dir: ${JSON.stringify(input.resolverFolder)}`,
    '  allow_delete: false',
    '  interval: "2m"',
    '  limit: 1000',
    '}',
    'resolver_preload {',
    ...Object.entries(input.accounts).map(([key, jwt]) => `  ${key}: ${jwt}`),
    '}',
    '',
  ].join('\n');
}
