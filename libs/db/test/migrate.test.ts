import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { startPostgres, type TestPostgres } from '@ambit/testing';
import pg from 'pg';
import { migrate, migrationsFolder } from '../src/index.js';

let postgres: TestPostgres;
let folder: string;
beforeAll(async () => {
  postgres = await startPostgres();
  folder = await mkdtemp(join(tmpdir(), 'ambit-migrations-'));
  await cp(migrationsFolder(), folder, { recursive: true });
}, 60_000);
afterAll(async () => {
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});

async function add(name: string, sql: string): Promise<void> {
  await mkdir(join(folder, name), { recursive: true });
  await writeFile(join(folder, name, 'migration.sql'), sql);
}
async function query<T extends pg.QueryResultRow>(sql: string): Promise<T[]> {
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  try {
    return (await client.query<T>(sql)).rows;
  } finally {
    await client.end();
  }
}

it('makes exactly the tables and columns that the schema describes', async () => {
  const columns = await query<{ name: string }>(
    `SELECT table_schema || '.' || table_name || '.' || column_name AS name FROM information_schema.columns WHERE table_schema NOT IN ('pg_catalog', 'information_schema', 'public')`,
  );
  expect(columns.map(({ name }) => name).sort()).toEqual((await columnsOfSchema()).sort());
});

/** `schema.table.column` of every stored field of every model in prisma/schema. */
async function columnsOfSchema(): Promise<string[]> {
  const source = join(migrationsFolder(), '..', 'schema');
  const texts = await Promise.all((await readdir(source)).map((name) => readFile(join(source, name), 'utf8')));
  const models = texts.flatMap((text) => [...text.matchAll(/^model (\w+) \{\n(.*?)^\}/gms)]);
  const names = new Set(models.map(([, name]) => name));
  return models.flatMap(([, name, body = '']) => {
    const schema = /@@schema\("(\w+)"\)/.exec(body)?.[1];
    const table = /@@map\("(\w+)"\)/.exec(body)?.[1] ?? name;
    const fields = [...body.matchAll(/^ {2}(\w+) +(\w+)(?:\[\])?\??(.*)$/gm)].filter(([, , type]) => !names.has(type ?? ''));
    return fields.map(([, field, , rest]) => `${schema}.${table}.${/@map\("(\w+)"\)/.exec(rest ?? '')?.[1] ?? field}`);
  });
}

it('applies what is missing once, however many start at once', async () => {
  await add('29990101000000_shelf', 'CREATE TABLE public.shelf (id int)');
  const applied = await Promise.all([migrate(postgres.url, folder), migrate(postgres.url, folder)]);
  expect(applied.flat()).toEqual(['29990101000000_shelf']);
});

it('refuses a migration that was edited after it was applied', async () => {
  await add('29990101000000_shelf', 'CREATE TABLE public.shelf (id bigint)');
  await expect(migrate(postgres.url, folder)).rejects.toThrow(/29990101000000_shelf was edited/);
  await add('29990101000000_shelf', 'CREATE TABLE public.shelf (id int)');
});

it('undoes a migration that fails half-way, and says which', async () => {
  await add('29990102000000_half', 'CREATE TABLE public.half (id int); SELECT no_such_function()');
  await expect(migrate(postgres.url, folder)).rejects.toThrow(/29990102000000_half failed and was undone/);
  expect(await query(`SELECT 1 FROM pg_tables WHERE tablename = 'half'`)).toEqual([]);
});
