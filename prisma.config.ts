import { defineConfig } from 'prisma/config';

// The command line of Prisma reads this file and asks for a default export.
export default defineConfig({
  schema: 'prisma/schema',
  migrations: { path: 'prisma/migrations' },
  datasource: { url: process.env['DATABASE_URL'] ?? '' },
});
