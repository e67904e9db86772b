import { expect, it } from '@jest/globals';
import { Results } from './results.js';

const answered = { content: [{ type: 'text', text: 'done' }], isError: false };
const asks = { content: [], isError: false, asks: { reason: 'may it?', nothingDone: true } };

it('runs an operation once however often it comes, granted or not', async () => {
  const results = new Results();
  let runs = 0;
  const begin = () => Promise.resolve((runs++, answered));
  const first = results.once({ operationId: 'a', granted: false }, begin);
  // While it runs, and when it has ended.
  const joined = results.once({ operationId: 'a', granted: true }, begin);
  expect([await first, await joined]).toEqual([answered, answered]);
  expect(await results.once({ operationId: 'a', granted: true }, begin)).toEqual(answered);
  expect(runs).toBe(1);
  results.clear();
});

it('begins one that asked once more when it was granted, and no more', async () => {
  const results = new Results();
  const begun: boolean[] = [];
  const once = (granted: boolean) =>
    results.once({ operationId: 'a', granted }, () => {
      begun.push(granted);
      return Promise.resolve(granted ? answered : asks);
    });
  expect(await once(false)).toEqual(asks);
  expect(await once(false)).toEqual(asks);
  expect(await once(true)).toEqual(answered);
  expect(await once(true)).toEqual(answered);
  expect(begun).toEqual([false, true]);
  results.clear();
});
