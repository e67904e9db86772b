import { z } from 'zod';

const Problem = z.object({
  title: z.string().default(''),
  status: z.int(),
  detail: z.string().default(''),
  code: z.string(),
  retry: z.enum(['never', 'later']).catch('never'),
  traceId: z.string().nullable().catch(null),
  data: z.unknown().optional(),
});

/** A failure that the server declared: `code` and `data` are the API, `message` is for a person. */
export class AmbitError extends Error {
  override readonly name = 'AmbitError';
  readonly code: string;
  /** HTTP status. */
  readonly status: number;
  /** `later`: the same request may succeed after a while. */
  readonly retry: 'never' | 'later';
  readonly data: unknown;
  readonly detail: string;
  readonly traceId: string | null;

  constructor(problem: z.output<typeof Problem>) {
    super(problem.detail === '' ? problem.title || problem.code : problem.detail);
    this.code = problem.code;
    this.status = problem.status;
    this.retry = problem.retry;
    this.data = problem.data;
    this.detail = problem.detail;
    this.traceId = problem.traceId;
  }
}

/** Nobody answered, or what answered is no Ambit: the request may or may not have arrived. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}

/** The error that an answer without success stands for. */
export async function errorOf(response: Response): Promise<AmbitError | Unreachable> {
  return (
    problemOf(await response.text().catch(() => '')) ??
    new Unreachable(`${new URL(response.url).origin} answered ${response.status} in no form that Ambit uses; check the address`)
  );
}

/** The error that a problem document stands for; undefined where the text is none. */
export function problemOf(text: string): AmbitError | undefined {
  const parsed = Problem.safeParse(readJson(text));
  return parsed.success ? new AmbitError(parsed.data) : undefined;
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
