/** Tells whether a name matches a glob in which `*` stands for any run of characters, also none. Takes time linear in most cases, quadratic at worst. */
export function matchesGlob(glob: string, name: string): boolean {
  let at = 0;
  let index = 0;
  let star = -1;
  let resume = 0;
  while (index < name.length) {
    if (glob.charAt(at) === '*') {
      star = at++;
      resume = index;
    } else if (at < glob.length && glob.charAt(at) === name.charAt(index)) {
      at++;
      index++;
    } else if (star >= 0) {
      at = star + 1;
      index = ++resume;
    } else {
      return false;
    }
  }
  while (glob.charAt(at) === '*') at++;
  return at === glob.length;
}
