import { readFile, stat } from 'node:fs/promises';
import { isNode, LineCounter, parseDocument, type Document } from 'yaml';
import type { Problem } from './problem.js';

const FILE_BYTES = 1024 * 1024;

/** ambit.yaml could not be taken: every problem is a sentence that begins with its place. */
export class ManifestInvalid extends Error {
  override readonly name = 'ManifestInvalid';
  constructor(readonly problems: readonly string[]) {
    super(problems.join('\n'));
  }
}

/** A YAML file as data, which knows on which line each part of it stands. */
export class YamlFile {
  readonly value: unknown;
  readonly #name: string;
  readonly #lines: LineCounter;
  readonly #document: Document;

  private constructor(name: string, text: string) {
    this.#name = name;
    this.#lines = new LineCounter();
    this.#document = parseDocument(text, { lineCounter: this.#lines, prettyErrors: false, uniqueKeys: true });
    const errors = [...this.#document.errors, ...this.#document.warnings];
    if (errors.length > 0)
      throw new ManifestInvalid(
        errors.map((error) => `${name}:${this.#lines.linePos(error.pos[0]).line}: this is not YAML: ${error.message}`),
      );
    this.value = this.#document.toJS({ maxAliasCount: 100 });
  }

  /** Reads a file of at most 1 MiB. Throws {@link ManifestInvalid} when there is none, or when it is no YAML. */
  static async read(path: string): Promise<YamlFile> {
    const found = await stat(path).catch(() => undefined);
    if (found?.isFile() !== true) throw new ManifestInvalid([`${path}: there is no such file`]);
    if (found.size > FILE_BYTES) throw new ManifestInvalid([`${path}: the file has ${found.size} bytes; at most ${FILE_BYTES} are taken`]);
    return new YamlFile(path, await readFile(path, 'utf8'));
  }

  /** The sentence of a problem, with its line and path. */
  tell(problem: Problem): string {
    const path = problem.path.map(String).join('.');
    return `${this.#name}:${this.lineOf(problem.path)}: ${path === '' ? '' : `${path}: `}${problem.text}`;
  }

  /** The line of the deepest part of the path that stands in the file. */
  lineOf(path: readonly PropertyKey[]): number {
    for (let depth = path.length; depth > 0; depth--) {
      const node = this.#document.getIn(path.slice(0, depth), true);
      if (isNode(node) && Array.isArray(node.range)) return this.#lines.linePos(node.range[0]).line;
    }
    return 1;
  }
}
