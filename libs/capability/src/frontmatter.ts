/** Cuts the YAML frontmatter from a SKILL.md; a byte order mark and CRLF are borne. */
export function splitFrontmatter(text: string): { readonly yaml: string; readonly body: string } | { readonly invalid: string } {
  const source = text.replace(/^\uFEFF/, '').replaceAll('\r\n', '\n');
  if (!source.startsWith('---\n')) return { invalid: 'SKILL.md must begin with a frontmatter block between two --- lines' };
  const end = source.indexOf('\n---', 3);
  const after = source.charAt(end + 4);
  if (end < 0 || (after !== '\n' && after !== '')) return { invalid: 'the frontmatter of SKILL.md has no closing --- line' };
  return { yaml: source.slice(4, end + 1), body: source.slice(end + 5) };
}
