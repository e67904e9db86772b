import { pattern, services, skillStore, type ServiceName, type ServiceUse } from '@ambit/contracts';
import { afterAll, beforeAll, expect, jest } from '@jest/globals';
import { mayHear, mayPublish } from '../system/permission.js';
import { startSystem, type System } from '../system/system.js';
import { verifies } from '../verifies.js';

jest.setTimeout(120_000);
const uses: [ServiceName, ServiceUse][] = Object.entries(services) as [ServiceName, ServiceUse][];
const sample = ({ subject }: { readonly subject: string }): string => subject.replace(/\{[A-Za-z]+\}/g, 'x');

let system: System;
beforeAll(async () => {
  system = await startSystem({ services: ['skill-store'] });
});
afterAll(() => system?.stop());

verifies(['R-OWN-1#2', 'R-INGRESS-1#2'], 'a service cannot write what another service owns, nor answer in its place', async () => {
  // The services work under these identities.
  await expect(system.bus.call(skillStore.getSkill, { agentId: 'nobody', name: 'none' })).rejects.toMatchObject({
    code: 'SKILL_NOT_FOUND',
  });
  for (const [name, use] of uses) {
    const connection = await system.connectAs(name);
    for (const [other, theirs] of uses.filter(([one]) => one !== name)) {
      for (const contract of theirs.answers) {
        expect({ name, hears: contract.subject, may: await mayHear(connection, pattern(contract)) }).toEqual({
          name,
          hears: contract.subject,
          may: false,
        });
      }
      for (const contract of theirs.emits) {
        expect({ name, emits: contract.subject, may: await mayPublish(connection, sample(contract)) }).toEqual({
          name,
          emits: contract.subject,
          may: false,
        });
      }
      for (const prefix of theirs.stores.journal.filter((one) => !use.stores.journal.includes(one))) {
        expect({ name, other, journal: prefix, may: await mayPublish(connection, `${prefix}x.y`) }).toEqual({
          name,
          other,
          journal: prefix,
          may: false,
        });
      }
      for (const [store, prefixes] of Object.entries(theirs.stores.writes)) {
        const own = use.stores.writes[store] ?? [];
        for (const prefix of prefixes.filter((one) => !own.includes(one) && !own.includes(''))) {
          const subject = `$KV.${store}.${prefix}x`;
          expect({ name, other, subject, may: await mayPublish(connection, subject) }).toEqual({ name, other, subject, may: false });
        }
      }
    }
    await connection.close();
  }
});
