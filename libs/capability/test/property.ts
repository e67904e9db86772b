import fc from 'fast-check';

/** Runs a property often enough to find what a person would not write down; a failure prints its seed and path. */
export function check<T extends readonly unknown[]>(property: fc.IProperty<[...T]> | fc.IPropertyWithHooks<[...T]>, runs = 1_000): void {
  fc.assert(property, { numRuns: runs });
}
