/** The Postgres schema of an owner: `session-service` owns `session_service`. Throws a TypeError on anything else than an owner's name. */
export function schemaOf(owner: string): string {
  if (!/^[a-z][a-z0-9-]{0,62}$/.test(owner)) throw new TypeError(`"${owner}" is not an owner`);
  return owner.replaceAll('-', '_');
}
