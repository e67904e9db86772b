import { expect, it } from '@jest/globals';
import { planChanges, type Found, type Item } from './plan.js';

const server = (name: string, url: string): Item => ({ kind: 'server', name, state: { url } });
const found = (item: Item, set: string | null, version = 1): Found => ({ ...item, set, version });
const about = { set: 'mine', prune: false };
const actions = (plan: ReturnType<typeof planChanges>) => Object.fromEntries(plan.changes.map(({ name, action }) => [name, action]));

it('creates, updates by field, and leaves alone what is as wanted', () => {
  const plan = planChanges(
    [server('new', 'a'), server('same', 'a'), server('moved', 'b')],
    [found(server('same', 'a'), 'mine'), found(server('moved', 'a'), 'mine')],
    about,
  );
  expect(actions(plan)).toEqual({ new: 'create', same: 'unchanged', moved: 'update' });
  expect(plan.changes.find(({ name }) => name === 'moved')?.detail).toBe('url');
});

it('never touches what another set or a person made', () => {
  const plan = planChanges(
    [server('theirs', 'b'), server('by-hand', 'b')],
    [found(server('theirs', 'a'), 'other'), found(server('by-hand', 'a'), null)],
    { set: 'mine', prune: true },
  );
  expect(actions(plan)).toEqual({ theirs: 'keep', 'by-hand': 'keep' });
});

it('deletes only within its set, and only when pruning', () => {
  const world = [found(server('old', 'a'), 'mine'), found(server('other', 'a'), 'other')];
  expect(actions(planChanges([], world, about))).toEqual({ old: 'keep' });
  expect(actions(planChanges([], world, { set: 'mine', prune: true }))).toEqual({ old: 'delete' });
});

it('the digest moves with what is wanted, with what is there, and with pruning', () => {
  const world = [found(server('a', 'a'), 'mine')];
  const digest = planChanges([server('a', 'b')], world, about).digest;
  expect(planChanges([server('a', 'b')], world, about).digest).toBe(digest);
  expect(planChanges([server('a', 'c')], world, about).digest).not.toBe(digest);
  expect(planChanges([server('a', 'b')], [found(server('a', 'a'), 'mine', 2)], about).digest).not.toBe(digest);
  expect(planChanges([server('a', 'b')], world, { set: 'mine', prune: true }).digest).not.toBe(digest);
});

it('makes servers before agents and agents before their skills', () => {
  const plan = planChanges([{ kind: 'skill', name: 's', state: {} }, { kind: 'agent', name: 'a', state: {} }, server('x', 'a')], [], about);
  expect(plan.changes.map(({ kind }) => kind)).toEqual(['server', 'agent', 'skill']);
});
