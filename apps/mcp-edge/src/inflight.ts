import type { CallLog } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import type { Json, RequestId } from './domain/json-rpc.js';

export interface Progress {
  readonly progress: number;
  readonly total?: number | undefined;
  readonly message?: string | undefined;
}
export interface CallListener {
  progressed(progress: Progress): void;
  logged(log: CallLog): void;
}
export interface ClientAnswer {
  readonly result?: Json | undefined;
  readonly error?: { readonly code: number; readonly message: string } | undefined;
}

const keyOf = (clientId: string, id: RequestId): string => `${clientId} ${typeof id} ${id}`;

/** The client cancelled the request, or its connection is gone where that means the same. */
export class ClientCancelled extends Error {
  override readonly name = 'ClientCancelled';
}

/** What is under way in this process: requests that may be cancelled, calls whose progress is told, questions that a client has yet to answer. */
@Injectable()
export class Inflight {
  readonly #requests = new Map<string, AbortController>();
  readonly #calls = new Map<string, Set<CallListener>>();
  readonly #questions = new Map<string, (answer: ClientAnswer) => void>();

  get size(): number {
    return this.#requests.size;
  }

  /** Has a client's request cancelled by its id, wherever the cancel comes in. Call the function that it gives at the request's end. */
  request(clientId: string, id: RequestId, controller: AbortController): () => void {
    const key = keyOf(clientId, id);
    this.#requests.set(key, controller);
    return () => {
      if (this.#requests.get(key) === controller) this.#requests.delete(key);
    };
  }
  cancelled(clientId: string, id: RequestId, reason: string): void {
    this.#requests.get(keyOf(clientId, id))?.abort(new ClientCancelled(reason));
  }

  /** Tells of a call until the function that it gives is called. */
  call(operationId: string, listener: CallListener): () => void {
    const listeners = this.#calls.get(operationId) ?? new Set();
    listeners.add(listener);
    this.#calls.set(operationId, listeners);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#calls.get(operationId) === listeners) this.#calls.delete(operationId);
    };
  }
  progressed(operationId: string, progress: Progress): void {
    for (const listener of this.#calls.get(operationId) ?? []) listener.progressed(progress);
  }
  logged(operationId: string, log: CallLog): void {
    for (const listener of this.#calls.get(operationId) ?? []) listener.logged(log);
  }

  /** The client's answer to one question. Rejects with the signal's reason. */
  answer(clientId: string, id: RequestId, signal: AbortSignal): Promise<ClientAnswer> {
    const key = keyOf(clientId, id);
    return new Promise((resolve, reject) => {
      const end = (): void => {
        this.#questions.delete(key);
        signal.removeEventListener('abort', onAbort);
      };
      const onAbort = (): void => {
        end();
        reject(signal.reason instanceof Error ? signal.reason : new ClientCancelled('the request ended'));
      };
      if (signal.aborted) return onAbort();
      signal.addEventListener('abort', onAbort, { once: true });
      this.#questions.set(key, (answer) => {
        end();
        resolve(answer);
      });
    });
  }
  answered(clientId: string, id: RequestId, answer: ClientAnswer): void {
    this.#questions.get(keyOf(clientId, id))?.(answer);
  }
}
