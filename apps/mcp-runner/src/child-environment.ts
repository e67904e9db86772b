/** What every stdio server gets of the runner's own environment. Names, not patterns: nothing of ours is ever inherited by accident. */
const INHERITED = [
  'PATH',
  'HOME',
  'LANG',
  'LC_ALL',
  'TZ',
  'TERM',
  'TMPDIR',
  'TEMP',
  'TMP',
  'SYSTEMROOT',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
];

/** The whole environment of a server: a few inherited names, the folder that is its own, then what its configuration says. */
export function childEnvironment(
  inherited: Readonly<Record<string, string | undefined>>,
  own: Readonly<Record<string, string>>,
  home: string | undefined,
): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const name of INHERITED) {
    const value = inherited[name];
    // A value that begins like a shell function is none of a server's business.
    if (value !== undefined && !value.startsWith('()')) environment[name] = value;
  }
  if (home !== undefined) Object.assign(environment, { HOME: home, TMPDIR: home });
  return { ...environment, ...own };
}
