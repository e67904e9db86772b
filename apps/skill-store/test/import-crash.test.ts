import { skillStore, type ImportSource } from '@ambit/contracts';
import { collect, until, withClient } from '@ambit/testing';
import { afterAll, beforeAll, expect } from '@jest/globals';
import fc from 'fast-check';
import { verifies } from '../../../test/verifies.js';
import { choose, ImportWorld } from './import-world.js';
import { skillText } from './upload.js';

let world: ImportWorld;
beforeAll(async () => {
  world = await ImportWorld.start({ AMBIT_LOG_LEVEL: 'silent' });
  await sql(`CREATE FUNCTION public.crash() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(5); RETURN NULL; END $$`);
}, 120_000);
afterAll(() => world?.stop());

const sql = (text: string): Promise<void> => withClient(world.postgres.url, async (client) => void (await client.query(text)));
const put = (agentId: string, name: string, body: string) =>
  world.putFiles(agentId, { 'SKILL.md': skillText(name, body), 'other.md': body });

/** Everything that an import writes, in its order; the first two only where a name is written anew. */
const STEPS = ['blob', 'blob_chunk', 'version', 'entry', 'epoch', 'outbox', 'audit'] as const;
const ALWAYS: readonly string[] = STEPS.slice(3);

verifies('R-IMPORT-3#1', 'a crash at any step leaves all of the target as it was, and the next try makes all of it new', {
  timeoutMs: 60_000,
  shows: async () => {
    const events = await collect(world.connection, skillStore.skillChanged);
    /** How many events each target is to have had. */
    const expected: number[] = [];
    const strategy = fc.constantFrom('skip' as const, 'rename' as const, 'overwrite' as const);
    // Before or after the statement, or at the commit.
    const cases = fc.record({
      skills: fc.uniqueArray(fc.record({ name: fc.constantFrom('one', 'two', 'three'), stands: fc.boolean(), onConflict: strategy }), {
        selector: ({ name }) => name,
        minLength: 1,
      }),
      when: fc.constantFrom('BEFORE', 'AFTER', 'COMMIT'),
    });
    const crashAt = (step: (typeof STEPS)[number]) =>
      fc.asyncProperty(cases, async ({ skills, when }) => {
        const isMoved = skills.some(({ stands, onConflict }) => !stands || onConflict !== 'skip');
        const number = expected.push(skills.filter(({ stands }) => stands).length + (isMoved ? 1 : 0));
        const target = `target-${number}`;
        const origin = `origin-${number}`;
        const source: ImportSource = { kind: 'agent', agentId: origin };
        for (const { name, stands } of skills) {
          await put(origin, name, `New ${number}.`);
          if (stands) await put(target, name, `Old ${number}.`);
        }
        const chosen = choose((await world.bus.call(skillStore.previewImport, { agentId: target, source })).skills).map((choice) => ({
          ...choice,
          onConflict: skills.find(({ name }) => name === choice.name)?.onConflict ?? ('skip' as const),
        }));
        const before = await world.list(target);
        const execute = () => world.bus.call(skillStore.executeImport, { agentId: target, source, skills: chosen });
        await sql(
          when === 'COMMIT'
            ? `CREATE CONSTRAINT TRIGGER crash AFTER INSERT OR UPDATE ON skill_store."${step}" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.crash()`
            : `CREATE TRIGGER crash ${when} INSERT ON skill_store."${step}" FOR EACH STATEMENT EXECUTE FUNCTION public.crash()`,
        );
        const crashed = await execute().then(
          () => false,
          () => true,
        );
        await sql(`DROP TRIGGER crash ON skill_store."${step}"`);
        if (isMoved && ALWAYS.includes(step)) expect(crashed).toBe(true);
        if (crashed) {
          expect(await world.list(target)).toEqual(before);
          await execute();
        }
        const after = await world.list(target);
        for (const { name, stands, onConflict } of skills) {
          const body = `${stands && onConflict !== 'overwrite' ? 'Old' : 'New'} ${number}.`;
          const read = async (path: string) => (await world.bus.call(skillStore.readSkill, { agentId: target, name, path })).text;
          expect([await read('SKILL.md'), await read('other.md')]).toEqual([skillText(name, body), body]);
          expect(after.some((one) => one.name === `${name}-copy`)).toBe(stands && onConflict === 'rename');
        }
      });
    for (const step of STEPS) await fc.assert(crashAt(step), { numRuns: step === 'entry' ? 2 : 1, endOnFailure: true });
    await put('marker', 'end', 'End.');
    await events.next(({ payload }) => payload.agentId === 'marker');
    // What a crash took back was never told.
    const told = expected.map((_, index) => events.all.filter(({ payload }) => payload.agentId === `target-${index + 1}`).length);
    expect(told).toEqual(expected);
    events.stop();
  },
});

verifies(
  'R-IMPORT-3#4',
  'what is staged is listed nowhere until the import is done, and an import that waits too long says so',
  async () => {
    const source: ImportSource = { kind: 'agent', agentId: 'quiet' };
    await put('quiet', 'calm', 'New.');
    const before = await put('stage', 'calm', 'Old.');
    const shown = (await world.bus.call(skillStore.previewImport, { agentId: 'stage', source })).skills;
    const execute = (onConflict: 'rename' | 'overwrite') =>
      world.bus.call(skillStore.executeImport, { agentId: 'stage', source, skills: choose(shown, onConflict) });
    await withClient(world.postgres.url, async (client) => {
      await client.query(`SELECT pg_advisory_lock(hashtextextended('skill-import.stage', 0))`);
      const waiting = Promise.allSettled([execute('overwrite'), execute('rename')]);
      const waiters = `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`;
      await until(async () => (await client.query(waiters)).rows.length > 0);
      expect(await world.list('stage')).toEqual([before]);
      const { skills } = await world.bus.call(skillStore.effectiveSkills, { agentId: 'stage', plugins: [] });
      expect(skills.filter(({ owner }) => owner === 'user').map(({ digest }) => digest)).toEqual([before.digest]);
      const digest = shown[0]?.digest ?? '';
      await expect(world.bus.call(skillStore.readSkill, { agentId: 'stage', name: 'calm-copy', digest })).rejects.toMatchObject({
        code: 'SKILL_NOT_FOUND',
      });
      expect(await waiting).toMatchObject([0, 1].map(() => ({ status: 'rejected', reason: { code: 'IMPORT_BUSY', retry: 'later' } })));
      expect(await world.list('stage')).toEqual([before]);
    });
    await execute('rename');
    expect((await world.list('stage')).map(({ name }) => name)).toEqual(['calm', 'calm-copy']);
  },
);
