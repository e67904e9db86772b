/** One request to the API of a system; the body is parsed, whatever the status. */
export async function http(
  system: { readonly apiUrl: string; readonly token: string },
  at: `${'GET' | 'PUT' | 'POST' | 'DELETE'} ${string}`,
  options: HttpOptions = {},
): Promise<HttpAnswer> {
  const [method = 'GET', path = '/'] = at.split(' ');
  const response = await fetch(system.apiUrl + path, {
    method,
    headers: { authorization: `Bearer ${options.token ?? system.token}`, 'content-type': 'application/json', ...options.headers },
    ...(options.signal === undefined ? {} : { signal: options.signal }),
    ...(options.body === undefined ? {} : { body: typeof options.body === 'string' ? options.body : JSON.stringify(options.body) }),
  });
  const text = await response.text();
  const type = response.headers.get('content-type') ?? '';
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: type.includes('json') && !type.includes('ndjson') ? (JSON.parse(text) as HttpAnswer['body']) : {},
  };
}

export interface HttpOptions {
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}
export interface HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Readonly<Record<string, any>>; // eslint-disable-line @typescript-eslint/no-explicit-any -- tests look into answers of every shape
}

/** A token of a principal with one role. */
export async function tokenFor(
  system: { readonly apiUrl: string; readonly token: string },
  who: {
    readonly principal: string;
    readonly role?: string;
    readonly groups?: readonly string[];
    readonly grant?: Readonly<Record<string, unknown>>;
  },
): Promise<string> {
  const { principal, role, groups, grant } = who;
  if (role !== undefined) await http(system, 'POST /v1/access', { body: { who: principal, role, ...grant } });
  const { body } = await http(system, 'POST /v1/token', { body: { name: `test of ${principal}`, principal, groups: groups ?? [] } });
  return String(body['token']);
}
