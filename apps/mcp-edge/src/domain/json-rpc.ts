import { z } from 'zod';

/** An object of JSON, as parameters and results are. */
export type Json = Record<string, unknown>;
export type RequestId = string | number;

const Id = z.union([z.string().max(200), z.number()]);
const Params = z.record(z.string(), z.unknown());
const Request = z.looseObject({ jsonrpc: z.literal('2.0'), id: Id, method: z.string().min(1).max(200), params: Params.optional() });
const Notification = z.looseObject({
  jsonrpc: z.literal('2.0'),
  method: z.string().min(1).max(200),
  params: Params.optional(),
  id: z.undefined().optional(),
});
const Answer = z.looseObject({
  jsonrpc: z.literal('2.0'),
  id: Id,
  method: z.undefined().optional(),
  result: Params.optional(),
  error: z.looseObject({ code: z.number(), message: z.string() }).optional(),
});

export type Message =
  | { readonly kind: 'request'; readonly id: RequestId; readonly method: string; readonly params: Json }
  | { readonly kind: 'notification'; readonly method: string; readonly params: Json }
  | {
      readonly kind: 'answer';
      readonly id: RequestId;
      readonly result?: Json;
      readonly error?: { readonly code: number; readonly message: string };
    };

/** Reads one message of JSON-RPC 2.0; undefined where it is none. Lists of messages are none: no revision since 2025-06-18 has them. */
export function readMessage(value: unknown): Message | undefined {
  const request = Request.safeParse(value);
  if (request.success) return { kind: 'request', id: request.data.id, method: request.data.method, params: request.data.params ?? {} };
  const notification = Notification.safeParse(value);
  if (notification.success) return { kind: 'notification', method: notification.data.method, params: notification.data.params ?? {} };
  const answer = Answer.safeParse(value);
  if (!answer.success) return undefined;
  const { id, result, error } = answer.data;
  return { kind: 'answer', id, ...(result === undefined ? {} : { result }), ...(error === undefined ? {} : { error }) };
}

/** Codes of JSON-RPC and of MCP 2026-07-28. */
export const CODE = {
  parse: -32_700,
  invalidRequest: -32_600,
  methodNotFound: -32_601,
  invalidParams: -32_602,
  internal: -32_603,
  refused: -32_000,
  headerMismatch: -32_020,
  missingCapability: -32_021,
  unsupportedVersion: -32_022,
} as const;

/** A request that cannot be answered with a result, as its client is told; `status` is what HTTP says where nothing was sent yet. */
export class RpcError extends Error {
  override readonly name = 'RpcError';

  constructor(
    readonly code: number,
    message: string,
    readonly more: { readonly data?: unknown; readonly status?: number } = {},
  ) {
    super(message);
  }
}

export function errorMessage(id: RequestId | null, { code, message, more }: RpcError): Json {
  return { jsonrpc: '2.0', id, error: { code, message, ...(more.data === undefined ? {} : { data: more.data }) } };
}

export function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
