import { isJSONRPCNotification, isJSONRPCRequest, type RequestId, type Transport } from '@modelcontextprotocol/client';
import { RESULT_LIMIT_BYTES } from './egress-fetch.js';
import { SYNTHETIC, syntheticData, TooLargeError, TRANSPORT_SECRET } from './outcome.js';

/** How long a remote server may go on answering a call that was cancelled before its stream is cut off. */
const CANCEL_GRACE_MS = 1_000;

interface OpenRequest {
  readonly abort: AbortController;
  cut?: NodeJS.Timeout;
}

/**
 * Makes an HTTP transport tell what it knows: a response stream that ended without its response fails that request at once
 * (left alone, the request waits for its whole time-out), and the stream of a cancelled request is cut off after a second.
 */
export function watchStreams(transport: Transport): void {
  const open = new Map<RequestId, OpenRequest>();
  const send = transport.send.bind(transport);
  const settle = (id: RequestId): void => {
    clearTimeout(open.get(id)?.cut);
    open.delete(id);
  };
  transport.onmessage = (message) => {
    if ('id' in message && !('method' in message) && message.id !== undefined) settle(message.id);
  };
  // The SDK tells of a broken stream in words and then, in the same breath, ends the stream's request.
  let isTooLarge = false;
  transport.onerror = (error) => {
    isTooLarge = error.message.includes(new TooLargeError(RESULT_LIMIT_BYTES).message);
  };
  transport.onclose = () => {
    for (const id of [...open.keys()]) settle(id);
  };
  transport.send = async (message, options) => {
    if (isJSONRPCNotification(message) && message.method === 'notifications/cancelled') cutLater(message.params?.['requestId']);
    if (!isJSONRPCRequest(message) || options?.onRequestStreamEnd !== undefined) return send(message, options);
    const { id } = message;
    const request: OpenRequest = { abort: new AbortController() };
    open.set(id, request);
    const signals =
      options?.requestSignal === undefined ? request.abort.signal : AbortSignal.any([request.abort.signal, options.requestSignal]);
    try {
      await send(message, { ...options, requestSignal: signals, onRequestStreamEnd: () => endOf(id) });
    } catch (error) {
      settle(id);
      throw error;
    }
  };
  function endOf(id: RequestId): void {
    if (!open.has(id)) return;
    settle(id);
    const error = isTooLarge
      ? {
          code: SYNTHETIC.tooLarge,
          message: new TooLargeError(RESULT_LIMIT_BYTES).message,
          data: syntheticData(TRANSPORT_SECRET, RESULT_LIMIT_BYTES),
        }
      : { code: SYNTHETIC.connectionLost, message: 'The server ended the stream without an answer', data: syntheticData(TRANSPORT_SECRET) };
    isTooLarge = false;
    transport.onmessage?.({ jsonrpc: '2.0', id, error });
  }
  function cutLater(id: unknown): void {
    if (typeof id !== 'number' && typeof id !== 'string') return;
    const request = open.get(id);
    if (request === undefined || request.cut !== undefined) return;
    request.cut = setTimeout(() => {
      settle(id);
      request.abort.abort();
    }, CANCEL_GRACE_MS);
    request.cut.unref();
  }
}
