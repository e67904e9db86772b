/** What NATS reads in the `nats` part of its JWTs, as far as Ambit uses it. */

export interface Permission {
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
}

/** What a connection may do. A subscription with a queue group is written `subject queue`. */
export interface Permissions {
  readonly pub: Permission;
  readonly sub: Permission;
  /** Answers to the reply subject of a request it received: how many, and for how many nanoseconds. */
  readonly resp?: { readonly max: number; readonly ttl: number };
}

export interface ServiceOrStream {
  readonly name: string;
  readonly subject: string;
  readonly type: 'service' | 'stream';
}
export interface AccountExport extends ServiceOrStream {
  readonly response_type?: 'Singleton' | 'Stream';
  /** Nanoseconds that an answer may take before the way back is forgotten. */
  readonly response_threshold?: number;
}
export interface AccountImport extends ServiceOrStream {
  readonly account: string;
}

export interface OperatorBody {
  readonly type: 'operator';
  readonly signing_keys: readonly string[];
  readonly system_account: string;
}
export interface AccountBody {
  readonly type: 'account';
  readonly imports: readonly AccountImport[];
  readonly exports: readonly AccountExport[];
  readonly limits: Readonly<Record<string, number | boolean>>;
  readonly signing_keys: readonly string[];
  /** Public user key, or `*`: JWTs issued at or before that second are refused. */
  readonly revocations?: Readonly<Record<string, number>>;
}
export interface UserBody extends Permissions {
  readonly type: 'user';
  readonly subs: number;
  readonly data: number;
  readonly payload: number;
  /** Set when a signing key, not the account's own, signs. */
  readonly issuer_account?: string;
}
export type ClaimsBody = OperatorBody | AccountBody | UserBody;

export interface Claims<B extends ClaimsBody> {
  readonly jti: string;
  readonly name: string;
  readonly sub: string;
  readonly iss: string;
  readonly iat: number;
  readonly exp?: number;
  readonly nats: B & { readonly version: number };
}
