import type { Call } from '@ambit/bus';
import { fault, toolGateway, type CallRecord, type Output, type Parsed } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';
import { z } from 'zod';
import { CallRepository } from './call.repository.js';
import { Projection } from './projection.js';

const Cursor = z.tuple([z.iso.datetime(), z.string().max(64)]);

/** What is known of calls, also of those that ended a moment ago here, and a person's word on those whose end is not. */
@Injectable()
export class CallService {
  constructor(
    @Inject(CallRepository) private readonly repository: CallRepository,
    @Inject(Projection) private readonly projection: Projection,
  ) {}

  async list({ cursor, limit, ...filter }: Parsed<typeof toolGateway.listCalls>): Promise<Output<typeof toolGateway.listCalls>> {
    await this.projection.flush();
    const calls = await this.repository.list(filter, readCursor(cursor), limit + 1);
    const items = calls.slice(0, limit);
    const last = items.at(-1);
    return calls.length > limit && last !== undefined
      ? { items, cursor: Buffer.from(JSON.stringify([last.claimedAt, last.operationId])).toString('base64url') }
      : { items };
  }

  async get(operationId: string): Promise<CallRecord> {
    await this.projection.flush();
    const call = await this.repository.find(operationId);
    if (call === undefined) throw fault(toolGateway.getCall, 'CALL_UNKNOWN');
    return call;
  }

  async resolve(
    { operationId, as, note, by }: Parsed<typeof toolGateway.resolveCall>,
    call: Call<typeof toolGateway.resolveCall>,
  ): Promise<CallRecord> {
    const resolved = await this.repository.resolve(operationId, { as, note, by: call.actor ?? by, at: new Date().toISOString() });
    if (resolved !== undefined) return resolved;
    throw (await this.repository.find(operationId)) === undefined
      ? fault(toolGateway.resolveCall, 'CALL_UNKNOWN')
      : fault(toolGateway.resolveCall, 'CALL_NOT_PARKED');
  }
}

function readCursor(cursor: string | undefined): { at: Date; operationId: string } | undefined {
  if (cursor === undefined) return undefined;
  try {
    const [at, operationId] = Cursor.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')));
    return { at: new Date(at), operationId };
  } catch {
    // A cursor that is none of ours is answered as the beginning.
    return undefined;
  }
}
