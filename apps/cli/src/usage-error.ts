/** The command was not written as it should be: exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
