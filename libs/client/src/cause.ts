/** What went wrong beneath, in a word: a system's code such as ECONNREFUSED where there is one. An error of another realm is told like one of ours. */
export function causeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return String(error);
  if ('code' in error && typeof error.code === 'string') return error.code;
  if ('cause' in error && error.cause !== undefined) return causeOf(error.cause);
  return 'message' in error ? String(error.message) : String(error);
}
