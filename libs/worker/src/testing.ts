import { createHash } from 'node:crypto';
import { Fault, refusals, type ContentBlock, type RunJob } from '@ambit/contracts';
import { attempt, type Handler } from './attempt.js';
import type { AttemptKey, CallResult, IntendedCall, Platform, RunKey, Step, TapeMessage, TapeView } from './platform.js';
import type { SnapshotView } from './snapshot.js';

/** A tool of a test: what it answers, and whether a person is asked first. */
export interface TestTool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema?: Readonly<Record<string, unknown>>;
  readonly asks?: boolean;
  readonly run: (input: Readonly<Record<string, unknown>>) => Promise<readonly ContentBlock[]> | readonly ContentBlock[];
}
export interface TestRunOptions {
  readonly message?: string;
  readonly model?: string;
  readonly instructions?: string;
  readonly tools?: readonly TestTool[];
  /** Decisions on calls and agents that ask, in order; a missing one is a denial. */
  readonly answers?: readonly ('allow' | 'deny')[];
  /** Kills the worker once: after the step was stored and before its batch, or after the outcome and before the reply. */
  readonly crashAfter?: 'step' | 'outcome';
}
export interface TestRunResult {
  readonly status: string;
  readonly messages: readonly TapeMessage[];
  /** Every physical execution, in order. */
  readonly executed: readonly { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> }[];
  readonly attempts: number;
  readonly output: string;
}

class Crash extends Error {}
const MAXIMUM_DELIVERIES = 3;

/** Runs a handler to its end without a platform: redelivery, decisions and resume included. */
export async function testRun(handler: Handler, options: TestRunOptions = {}): Promise<TestRunResult> {
  const platform = new MemoryPlatform(options);
  let status = 'failed';
  for (let delivery = 1; delivery <= MAXIMUM_DELIVERIES; delivery++) {
    const verdict = await attempt(platform.job, { platform, handler, working: () => undefined, signal: new AbortController().signal });
    if (verdict.kind === 'lost') continue;
    if (verdict.kind === 'again') {
      if (!(verdict.error instanceof Crash)) throw verdict.error;
      continue;
    }
    status = verdict.status;
    if (status !== 'waiting') break;
    await platform.decide();
    delivery = 0;
  }
  return { status, messages: platform.messages, executed: platform.executed, attempts: platform.attempts, output: platform.text };
}

class MemoryPlatform implements Platform {
  readonly job: RunJob;
  readonly messages: TapeMessage[];
  readonly executed: { name: string; arguments: Readonly<Record<string, unknown>> }[] = [];
  attempts = 0;
  text = '';
  private steps = 0;
  private open: IntendedCall[] = [];
  private readonly outcomes = new Map<string, CallResult>();
  private readonly answers: ('allow' | 'deny')[];
  private crashes: number;
  private readonly view: SnapshotView;

  constructor(private readonly options: TestRunOptions) {
    this.view = {
      schemaVersion: 1,
      agentId: 'test',
      skills: [],
      tools: (options.tools ?? []).map((tool) => ({
        name: tool.name,
        description: tool.description ?? '',
        inputSchema: { ...(tool.inputSchema ?? { type: 'object' }) },
        effect: 'write' as const,
      })),
    };
    const id = '0190c3a0-0000-7000-8000-000000000001';
    const fingerprint = createHash('sha256').update(JSON.stringify(this.view)).digest('hex');
    this.job = {
      schemaVersion: 1,
      runId: id,
      originRunId: id,
      sessionId: id,
      fingerprint,
      model: options.model ?? 'test',
      instructions: options.instructions ?? '',
      limits: { runsAtOnce: 1, callsPerRun: 128, callsPerMinute: 6_000 },
      workspaceId: null,
      degraded: [],
    };
    this.messages = [{ role: 'user', content: [{ type: 'text', text: options.message ?? 'go' }] }];
    this.answers = [...(options.answers ?? [])];
    this.crashes = options.crashAfter === undefined ? 0 : 1;
  }

  start(_run: RunKey) {
    this.attempts += 1;
    return Promise.resolve({
      ...this.tapeView(),
      token: `token-of-attempt-${String(this.attempts).padStart(8, '0')}`,
      attempt: this.attempts,
    });
  }
  snapshot(_run: RunKey) {
    return Promise.resolve(this.view);
  }
  tape(_run: AttemptKey) {
    return Promise.resolve(this.tapeView());
  }
  step(_run: AttemptKey, step: Step) {
    if (step.step !== this.steps || this.open.length > 0)
      return Promise.reject(new Fault('STEP_TAKEN', { status: 409, retry: 'never', message: 'This step is stored already' }));
    this.messages.push({ role: 'assistant', content: [...step.content], ...(step.raw === undefined ? {} : { raw: step.raw }) });
    this.open = [...step.calls];
    if (this.open.length === 0) this.steps += 1;
    this.crash('step');
    return Promise.resolve();
  }
  async execute(_run: AttemptKey, batch: { readonly step: number; readonly calls: readonly IntendedCall[] }) {
    const results: CallResult[] = [];
    for (const call of batch.calls) results.push(await this.outcome(call));
    if (!results.some((result) => result.status === 'waiting')) this.close(batch.calls);
    this.crash('outcome');
    return results;
  }
  renew(_run: AttemptKey) {
    return Promise.resolve({ cancelled: false });
  }
  refresh(run: AttemptKey) {
    return Promise.resolve({ fingerprint: run.fingerprint });
  }
  permission(_run: AttemptKey) {
    return Promise.resolve(this.answers.shift() === 'allow' ? ('allowed' as const) : ('denied' as const));
  }
  edge(_run: AttemptKey) {
    return Promise.reject(new Error('there is no edge without a platform'));
  }
  finish(_run: AttemptKey) {
    return Promise.resolve();
  }
  output(_run: RunKey, text: string) {
    this.text += text;
  }

  /** Takes the pending decisions in call order, executing what is allowed. */
  async decide(): Promise<void> {
    for (const call of this.open) {
      if (this.outcomes.get(call.callId)?.status !== 'waiting') continue;
      if (this.answers.shift() === 'allow') this.outcomes.set(call.callId, await this.run(call));
      else
        this.outcomes.set(call.callId, {
          callId: call.callId,
          status: 'refused',
          fault: { code: 'DENIED', message: refusals.DENIED.message },
        });
    }
    this.close(this.open);
  }

  private close(calls: readonly IntendedCall[]): void {
    const results = calls.map((call) => this.outcomes.get(call.callId)).filter((result): result is CallResult => result !== undefined);
    this.messages.push({ role: 'tool', results });
    this.open = [];
    this.steps += 1;
  }
  private async outcome(call: IntendedCall): Promise<CallResult> {
    const known = this.outcomes.get(call.callId);
    if (known !== undefined) return known;
    const asks = this.options.tools?.find((tool) => tool.name === call.name)?.asks ?? false;
    const result: CallResult = asks ? { callId: call.callId, status: 'waiting' } : await this.run(call);
    this.outcomes.set(call.callId, result);
    return result;
  }
  private async run(call: IntendedCall): Promise<CallResult> {
    const tool = this.options.tools?.find((candidate) => candidate.name === call.name);
    if (tool === undefined)
      return {
        callId: call.callId,
        status: 'refused',
        fault: { code: 'TOOL_NOT_IN_SNAPSHOT', message: refusals.TOOL_NOT_IN_SNAPSHOT.message },
      };
    const input: Readonly<Record<string, unknown>> = JSON.parse(call.arguments);
    this.executed.push({ name: call.name, arguments: input });
    return { callId: call.callId, status: 'completed', content: [...(await tool.run(input))] };
  }
  private tapeView(): TapeView {
    return { step: this.steps, messages: [...this.messages], openCalls: [...this.open], more: false, before: null };
  }
  private crash(after: 'step' | 'outcome'): void {
    if (this.options.crashAfter !== after || this.crashes === 0) return;
    this.crashes -= 1;
    throw new Crash(`the worker was killed after the ${after}`);
  }
}
