/** What a command reads from and writes to. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Whether a person looks at what is written: colours are for them alone. */
  readonly isTerminal: boolean;
  /** Aborts when the person interrupts. */
  readonly signal: AbortSignal;
  write(words: string): void;
  complain(words: string): void;
  readInput(): Promise<string>;
  /** The person's answer; undefined where nobody can be asked. */
  ask(question: string): Promise<string | undefined>;
}
