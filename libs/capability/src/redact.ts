import { isObject } from './arguments.js';
import { excerptOf } from './fit.js';

/** The largest preview of a call's arguments, in bytes of UTF-8. */
export const PREVIEW_BYTES = 16 * 1024;
export const REDACTED = '[redacted]';
const TEXT_KEPT = 2_000;
const DEPTH_KEPT = 12;
const ENTRIES_KEPT = 200;

// Words in a key that say that its value opens something. Compared without case and punctuation, so `X-Api-Key` is `xapikey`.
const SECRET_KEY =
  /(password|passwd|passphrase|secret|token|apikey|accesskey|privatekey|credential|authorization|cookie|sessionid|bearer|otp|pincode|connectionstring)/;
const NOT_SECRET_KEY = /(maxtokens|mintokens|tokencount|tokenlimit|tokens|tokentype|tokenizer|nexttoken|pagetoken)$/;
// Values that open something wherever they stand. Each keeps what surrounds it.
const SECRET_VALUES: readonly RegExp[] = [
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)/g,
  /\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}/gi,
  /\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*/g,
  /\b(gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|xox[abprs]-[A-Za-z0-9-]{10,}|sk-[A-Za-z0-9_-]{16,}|AKIA[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,})/g,
  /(?<=:\/\/[^\s/:@]{0,200}:)[^\s/@]{1,200}(?=@)/g,
  /(?<=\b(?:password|passwd|secret|token|api[_-]?key)\s{0,3}[=:]\s{0,3}["']?)[^\s"'&,;]{4,}/gi,
];

export interface Preview {
  /** JSON of the redacted arguments, at most {@link PREVIEW_BYTES}. */
  readonly text: string;
  readonly redacted: boolean;
  /** Something was left out for its size; the whole is known by its hash alone. */
  readonly truncated: boolean;
}

class Redaction {
  redacted = false;
  truncated = false;

  value(value: unknown, depth: number): unknown {
    if (typeof value === 'string') return this.text(value);
    if (typeof value !== 'object' || value === null) return value;
    if (depth >= DEPTH_KEPT) return this.cut('…');
    if (Array.isArray(value)) {
      const kept = value.slice(0, ENTRIES_KEPT).map((entry) => this.value(entry, depth + 1));
      return value.length > ENTRIES_KEPT ? [...kept, this.cut(`… ${value.length - ENTRIES_KEPT} more`)] : kept;
    }
    const entries = Object.entries(value);
    const kept = entries
      .slice(0, ENTRIES_KEPT)
      .map(([key, entry]): [string, unknown] => [this.text(key), isSecretKey(key) ? this.hide(entry) : this.value(entry, depth + 1)]);
    if (entries.length > ENTRIES_KEPT) kept.push(['…', this.cut(`${entries.length - ENTRIES_KEPT} more`)]);
    return Object.fromEntries(kept);
  }

  private hide(value: unknown): unknown {
    if (value === null || value === '' || typeof value === 'boolean') return value;
    this.redacted = true;
    return REDACTED;
  }

  private text(text: string): string {
    // Secrets are looked for before the text is cut, so that no half of one is left at the end.
    const clean = SECRET_VALUES.reduce((current, pattern) => current.replace(pattern, REDACTED), text);
    if (clean !== text) this.redacted = true;
    return clean.length <= TEXT_KEPT ? clean : this.cut(`${excerptOf(clean, TEXT_KEPT)}… (${text.length} characters)`);
  }

  private cut(text: string): string {
    this.truncated = true;
    return text;
  }
}

/** Tells whether a key's name says that its value opens something. */
export function isSecretKey(key: string): boolean {
  const plain = key
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '');
  return SECRET_KEY.test(plain) && !NOT_SECRET_KEY.test(plain);
}

/** What a person is shown of a call's arguments: secrets hidden by key and by look, long parts cut, at most 16 KiB of JSON. */
export function previewArguments(input: Readonly<Record<string, unknown>>): Preview {
  const redaction = new Redaction();
  const value = redaction.value(input, 0);
  let text = JSON.stringify(value);
  if (excerptOf(text, PREVIEW_BYTES) !== text) {
    redaction.truncated = true;
    text = JSON.stringify(isObject(value) ? shortened(value) : {});
  }
  return { text, redacted: redaction.redacted, truncated: redaction.truncated };
}

/** As many entries, from the first, as fit; each that is too large alone is named without its value. */
function shortened(value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const kept: [string, unknown][] = [];
  const size = (entries: readonly [string, unknown][]) => utf8Length(JSON.stringify(Object.fromEntries(entries)));
  for (const [key, entry] of Object.entries(value)) {
    const share = Math.floor(PREVIEW_BYTES / 4);
    const shown: [string, unknown] = utf8Length(JSON.stringify(entry)) > share ? [key, '… (too large to show)'] : [key, entry];
    if (size([...kept, shown]) > PREVIEW_BYTES - 64) {
      kept.push(['…', 'more']);
      break;
    }
    kept.push(shown);
  }
  return Object.fromEntries(kept);
}

const utf8Length = (text: string) => new TextEncoder().encode(text).length;
