/** Fingerprints that one run may be given. */
const FINGERPRINTS_MAX = 64;

/** A run's fingerprints after it was given one more: the first stays first, because its job names it; of the others the newest are kept. */
export function withFingerprint(given: readonly string[], fingerprint: string): string[] {
  const [first = fingerprint, ...later] = given.filter((known, index) => index === 0 || known !== fingerprint);
  return first === fingerprint ? [first, ...later] : [first, ...later.slice(-(FINGERPRINTS_MAX - 2)), fingerprint];
}
