import { expect, it } from '@jest/globals';
import type { Found, Item } from './plan.js';
import { tiedAgents } from './ties.js';

const agent = (name: string, ...match: object[]): Item => ({ kind: 'agent', name, state: { match } });
const there = (set: string | null, item: Item): Found => ({ ...item, set, version: 1 });
const about = { set: 'support', prune: false };

it('names the agents of a set that one message would match, among themselves and with what stays', () => {
  const chat = agent('chat', { adapter: 'chat' });
  const mail = agent('mail', { adapter: 'mail' });
  expect(tiedAgents([chat, mail], [], about)).toEqual([]);
  expect(tiedAgents([chat, mail, agent('all', { contentContains: 'hi' })], [], about)).toEqual(['all', 'chat', 'mail']);
  expect(tiedAgents([chat], [there(null, agent('hers', { adapter: 'chat' }))], about)).toEqual(['chat', 'hers']);
});

it('asks how things will be: what moves to another agent, is changed or deleted does not count as it was', () => {
  const moved = [agent('a', { sceneId: '1' }), agent('b', { sceneId: '2' })];
  const before = [there('support', agent('a', { sceneId: '2' })), there('support', agent('b', { sceneId: '1' }))];
  expect(tiedAgents(moved, before, about)).toEqual([]);
  const left = there('support', agent('old', { sceneId: '1' }));
  expect(tiedAgents(moved, [left], about)).toEqual(['a', 'old']);
  expect(tiedAgents(moved, [left], { ...about, prune: true })).toEqual([]);
});

it('leaves alone what others have among themselves, and an agent that the set does not get', () => {
  const others = [there(null, agent('x', { adapter: 'chat' })), there('other', agent('y', { adapter: 'chat' }))];
  expect(tiedAgents([agent('mail', { adapter: 'mail' })], others, about)).toEqual([]);
  expect(tiedAgents([agent('x', { adapter: 'mail' }), agent('mail', { adapter: 'mail' })], others, about)).toEqual([]);
});
