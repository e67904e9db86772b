import { expect, it } from '@jest/globals';
import { takingOf } from './taken-away.js';

const id = '6d1f7c1e-6a0c-4f0a-9d0e-3f1f6f0b2a11';

it('finds tokens and grants by their id, and nothing where the target is none', () => {
  expect(takingOf({ action: 'access.revoked', target: id })).toEqual({ kind: 'grant', id });
  expect(takingOf({ action: 'token.revoked', target: id })).toEqual({ kind: 'token', id });
  for (const action of ['access.revoked', 'token.revoked']) expect(takingOf({ action, target: 'user:erin viewer' })).toBeUndefined();
});

it('finds a webhook by the id that its removal names', () => {
  expect(takingOf({ action: 'notify.removed', target: `notify:${id}` })).toEqual({ kind: 'notify', id });
});
