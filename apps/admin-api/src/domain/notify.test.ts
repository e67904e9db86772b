import { expect, it } from '@jest/globals';
import { eventIdOf, notifyState } from './notify.js';

it('compares entries by what they say, not by how it is written', () => {
  const webhook = { url: 'https://hooks.example/a', sign: { secret: 'key' } };
  expect(notifyState({ events: ['interaction.requested', 'call.parked', 'interaction.requested'], webhook })).toEqual(
    notifyState({ events: ['call.parked', 'interaction.requested'], webhook: { ...webhook, url: 'https://elsewhere.example' } }),
  );
});

it('names an event by what happened to what', () => {
  expect(eventIdOf({ event: 'interaction.requested', about: 'i' })).toBe('i.requested');
  expect(eventIdOf({ event: 'call.parked', about: 'o' })).toBe('o.parked');
});
