/** What the helpers need of a Prisma client or of the client inside a transaction. */
export interface RawSql {
  $queryRawUnsafe<T>(query: string, ...values: unknown[]): PromiseLike<T>;
  $executeRawUnsafe(query: string, ...values: unknown[]): PromiseLike<number>;
}
