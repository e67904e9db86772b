import { AsyncLocalStorage } from 'node:async_hooks';

interface Counter {
  served: number;
}

const running = new AsyncLocalStorage<Counter>();

/** Runs a test and counts the requests sent out of it that a service answered; whatever others send meanwhile does not count. */
export function countServed<T>(test: () => Promise<T>): Promise<T> {
  return running.run({ served: 0 }, test);
}

/** How many requests of the test that asks were answered by a service so far. */
export function servedCount(): number {
  return running.getStore()?.served ?? 0;
}

/** Remembers which test sends a request; call what it returns when the answer is there. */
export function requestSent(): () => void {
  const counter = running.getStore();
  return () => {
    if (counter !== undefined) counter.served += 1;
  };
}

/** For a request that another process made for the test, a command of the CLI for instance, once its answer is there. */
export function noteServed(): void {
  requestSent()();
}
