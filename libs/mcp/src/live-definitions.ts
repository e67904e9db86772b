import { definitionHash } from '@ambit/capability';
import type { Catalogue } from './catalogue.js';
import { DRIFT } from './call-faults.js';
import type { InstanceCall, McpInstance } from './instance.js';
import { sentenceOf, type CallOutcome } from './outcome.js';

/** The list has to be read before the call may be compared with it. */
const UNREAD = 'The list of this server is being read again';
/** What a call waits for that list at most. */
const LIST_WITHIN_MS = 30_000;

/** Compares what a snapshot pinned of a tool with what the server offers now. One comparison costs a look into a map. */
export class LiveDefinitions {
  private of: Catalogue | undefined;
  private hashes = new Map<string, string>();

  constructor(private readonly instance: Pick<McpInstance, 'call' | 'catalogue'>) {}

  /**
   * Sends a call whose tool is what was pinned. Where the list may have changed, as after another start of the process, it is read first; a list that
   * goes on changing is taken as it was read.
   */
  async checked(
    { tool, definition }: { readonly tool: string; readonly definition?: string | undefined },
    call: InstanceCall,
  ): Promise<CallOutcome> {
    if (definition === undefined) return this.instance.call(call);
    const startedAt = performance.now();
    const gate =
      (mayBeOld: boolean): InstanceCall['mayDispatch'] =>
      () => {
        const objection = call.mayDispatch?.();
        if (objection !== undefined) return objection;
        if (!mayBeOld && !this.instance.catalogue.isFresh) return UNREAD;
        return this.hashOf(tool) === definition ? undefined : DRIFT;
      };
    const outcome = await this.instance.call({ ...call, mayDispatch: gate(false) });
    if (outcome.status !== 'not_dispatched' || outcome.message !== UNREAD) return outcome;
    const problem = await this.readAgain(call);
    if (problem !== undefined) return problem;
    return this.instance.call({
      ...call,
      timeoutMs: Math.max(1, call.timeoutMs - (performance.now() - startedAt)),
      mayDispatch: gate(true),
    });
  }

  /** Reads the list; says why that could not be done in time. */
  private async readAgain({ abort, timeoutMs }: InstanceCall): Promise<CallOutcome | undefined> {
    const late = AbortSignal.timeout(Math.min(timeoutMs, LIST_WITHIN_MS));
    const ended = AbortSignal.any([abort.signal, late]);
    try {
      await new Promise((resolve, reject) => {
        const leave = (): void => reject(new Error('The server did not list its tools within the time of this call'));
        ended.addEventListener('abort', leave, { once: true });
        if (ended.aborted) leave();
        this.instance.catalogue.read().then(resolve, reject);
      });
      return undefined;
    } catch (error) {
      if (abort.signal.aborted)
        return { status: 'not_dispatched', cause: 'cancelled', message: 'The call was cancelled before it was sent' };
      return { status: 'not_dispatched', cause: 'unreachable', message: sentenceOf(error) };
    }
  }

  /** The hash of a tool's live definition; undefined where the server has no such tool. Each is made once for a list. */
  private hashOf(name: string): string | undefined {
    const { current } = this.instance.catalogue;
    if (current !== this.of) {
      this.of = current;
      this.hashes = new Map();
    }
    const known = this.hashes.get(name);
    if (known !== undefined) return known;
    const tool = current?.tools.find((one) => one.name === name);
    if (tool === undefined) return undefined;
    const hash = definitionHash(tool);
    this.hashes.set(name, hash);
    return hash;
  }
}
