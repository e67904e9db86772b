import { z } from 'zod';
import { signal } from './kit/contract.js';
import { Hex64, JsonObject } from './nouns.js';

/** An MCP client's request is one of one client's: its id alone says nothing. */
const RequestId = z.union([z.string().max(200), z.number()]);
const ClientId = z.string().regex(/^[0-9a-f]{32}$/);

/** What the processes that MCP clients connect to are told, and tell each other: a client's next request may reach another one. */
export const mcpEdge = {
  callProgress: signal('ambit.ctl.mcp-edge.v1.call.progress.{edgeId}', {
    summary: 'Progress of a call that this edge waits for',
    payload: z.object({ operationId: Hex64, progress: z.number(), total: z.number().optional(), message: z.string().max(1_000).optional() }),
  }),
  callLogged: signal('ambit.ctl.mcp-edge.v1.call.log.{edgeId}', { summary: 'A log message of a server within a call that this edge waits for', payload: z.object({ operationId: Hex64, level: z.string().max(20), logger: z.string().max(200).optional(), data: z.unknown() }) }),
  resourceFollowed: signal('ambit.ctl.mcp-edge.v1.resource.follow.{clientId}', { summary: 'A client wants to hear of a resource, or no more, on the stream that some edge holds for it', payload: z.object({ clientId: ClientId, uri: z.string().max(8_192), isOn: z.boolean() }) }),
  requestCancelled: signal('ambit.ctl.mcp-edge.v1.request.cancel.{clientId}', {
    summary: 'A client cancels a request that some edge works on',
    payload: z.object({ clientId: ClientId, requestId: RequestId, reason: z.string().max(200) }),
  }),
  clientAnswered: signal('ambit.ctl.mcp-edge.v1.client.answer.{clientId}', {
    summary: 'A client’s answer to what some edge asked of it',
    payload: z.object({ clientId: ClientId, requestId: RequestId, result: JsonObject.optional(), error: z.object({ code: z.number(), message: z.string().max(2_000) }).optional() }),
  }),
};
