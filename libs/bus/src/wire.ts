import { Fault, HEADER, platformFault, platformFaults, type FaultDef, type FaultMap, type Rpc } from '@ambit/contracts';
import { headers, type Msg, type MsgHdrs } from '@nats-io/nats-core';
import { z } from 'zod';

const decoder = new TextDecoder('utf-8', { fatal: true });
const FaultOnWire = z.object({ code: z.string().max(100), message: z.string().max(2_000), data: z.unknown().optional() });

/** Faults that came over the wire: a nested call's INVALID_INPUT is our mistake, not our caller's. */
const foreign = new WeakSet<Fault>();

/** Reads JSON; an empty body is an empty object, so that a call without input can be made by hand. Throws a SyntaxError or TypeError. */
export function decodeJson(data: Uint8Array): unknown {
  return data.length === 0 ? {} : JSON.parse(decoder.decode(data));
}

/** Says where and why a value does not have its shape; at most 20 issues, never the value itself. */
export function issuesOf(error: z.ZodError): { path: string; message: string }[] {
  return error.issues.slice(0, 20).map((issue) => ({ path: issue.path.map(String).join('.'), message: issue.message }));
}

/** The declared fault an error crosses as, or undefined when it must cross as INTERNAL. */
export function crossing(contract: Pick<Rpc, 'errors'>, error: unknown): Fault | undefined {
  if (!(error instanceof Fault)) return undefined;
  const declared = own(contract.errors, error.code);
  if (declared !== undefined) return withData(error.code, declared, error);
  if (error.code === 'INVALID_INPUT' && foreign.has(error)) return undefined;
  const platform = own(platformFaults, error.code);
  return platform === undefined ? undefined : withData(error.code, platform, error);
}

/** ADR-32: a numeric status, one sentence; the body has code, message and data. */
export function faultHeaders(fault: Fault): MsgHdrs {
  const result = headers();
  result.set(HEADER.errorCode, String(fault.status));
  result.set(HEADER.error, fault.message.replace(/[\r\n]+/g, ' '));
  return result;
}

/** Rebuilds the fault of a failed answer: only a declared code with data of its shape; anything else is INTERNAL. */
export function faultOf(contract: Pick<Rpc, 'errors'>, message: Msg, traceId: string): Fault {
  const fault = parseFault(contract, message) ?? platformFault('INTERNAL', { traceId });
  foreign.add(fault);
  return fault;
}

function parseFault(contract: Pick<Rpc, 'errors'>, message: Msg): Fault | undefined {
  let body: unknown;
  try {
    body = decodeJson(message.data);
  } catch {
    return undefined;
  }
  const parsed = FaultOnWire.safeParse(body);
  if (!parsed.success) return undefined;
  const def = own(contract.errors, parsed.data.code) ?? own(platformFaults, parsed.data.code);
  return def === undefined ? undefined : withData(parsed.data.code, def, parsed.data);
}

function withData(code: string, def: FaultDef, from: { readonly data?: unknown; readonly message: string }): Fault | undefined {
  if (def.data === undefined) return new Fault(code, def, undefined, from.message);
  const data = def.data.safeParse(from.data);
  return data.success ? new Fault(code, def, data.data, from.message) : undefined;
}

// `code in errors` would find `constructor`.
function own(faults: FaultMap, code: string): FaultDef | undefined {
  return Object.hasOwn(faults, code) ? faults[code] : undefined;
}
