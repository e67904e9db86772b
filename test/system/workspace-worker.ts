import { toolGateway, type Agent, type CallResult, type IntendedCall } from '@ambit/contracts';
import { collect } from '@ambit/testing';
import { connect, type AmbitWorker, type Run, type TapeMessage, type WorkerTool, type WorkOptions } from '@ambit/worker';
import type { Scene } from './scene.js';

/** A run of a worker on the SDK, whose model is the test. */
export class ScriptedRun {
  readonly #calls: ((calls: readonly IntendedCall[] | null) => void)[] = [];
  readonly #asked: (readonly IntendedCall[] | null)[] = [];
  #answer: (results: readonly CallResult[]) => void = () => undefined;
  /** What stood on the tape when the run began. */
  opened: readonly TapeMessage[] = [];

  constructor(readonly run: Run) {}

  /** Says a step with these calls; gives their results. */
  use(...calls: readonly IntendedCall[]): Promise<readonly CallResult[]> {
    return new Promise((resolve) => {
      this.#answer = resolve;
      this.#say(calls);
    });
  }
  /** Says that the run is done. */
  done(): void {
    this.#say(null);
  }

  /** The results that the tape ended with when the run was resumed. */
  get results(): readonly CallResult[] {
    const last = this.opened.at(-1);
    return last?.role === 'tool' ? last.results : [];
  }

  async follow(opened: (run: ScriptedRun) => void): Promise<void> {
    let isFirst = true;
    for await (const turn of this.run.turns()) {
      if (isFirst) {
        this.opened = turn.messages;
        opened(this);
      }
      isFirst = false;
      const calls = await Promise.race([this.#next(), aborted(this.run.signal)]);
      if (calls === null) await turn.say({ content: [{ type: 'text', text: 'Done.' }] });
      else this.#answer(await turn.say({ content: [], calls }));
    }
  }

  #say(calls: readonly IntendedCall[] | null): void {
    const waiting = this.#calls.shift();
    if (waiting === undefined) this.#asked.push(calls);
    else waiting(calls);
  }
  #next(): Promise<readonly IntendedCall[] | null> {
    const asked = this.#asked.shift();
    return asked === undefined ? new Promise((resolve) => this.#calls.push(resolve)) : Promise.resolve(asked);
  }
}

/** A worker on the SDK in the test's own process, with tools; its runs wait for the test to say what they do. */
export class ScriptedWorker {
  readonly #runs: ScriptedRun[] = [];
  readonly #waiting: ((run: ScriptedRun) => void)[] = [];

  private constructor(
    readonly agentId: string,
    readonly ambit: AmbitWorker,
  ) {}

  /** Resolves when the gateway knows the tools. */
  static async start(
    scene: Scene,
    agent: Pick<Agent, 'id'>,
    { tools, url, ...options }: WorkOptions & { readonly tools: readonly WorkerTool[]; readonly url?: string | undefined },
  ): Promise<ScriptedWorker> {
    const changes = await collect(scene.system.connection, toolGateway.toolsChanged);
    const credentials = await scene.system.workerCredentials({ agentId: agent.id, pools: [options.pool ?? 'shared'] });
    const ambit = await connect({ url: url ?? scene.system.natsUrl, credentials, onError: () => undefined });
    const worker = new ScriptedWorker(agent.id, ambit);
    void ambit.work(agent.id, (run) => new ScriptedRun(run).follow((one) => worker.#opened(one)), { tools, ...options });
    await changes.next(({ payload }) => payload.agentId === agent.id && payload.live);
    changes.stop();
    return worker;
  }

  /** The next run that begins here. */
  begin(): Promise<ScriptedRun> {
    const run = this.#runs.shift();
    return run === undefined ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve(run);
  }

  stop(): Promise<void> {
    return this.ambit.close();
  }

  #opened(run: ScriptedRun): void {
    const waiting = this.#waiting.shift();
    if (waiting === undefined) this.#runs.push(run);
    else waiting(run);
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) =>
    signal.addEventListener('abort', () => reject(new Error('the run was stopped')), { once: true }),
  );
}
