import type { Rpc } from '@ambit/contracts';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

export interface MetricDef<L extends string> {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly L[];
}
export interface GaugeDef extends MetricDef<never> {
  /** Asked at every scrape; undefined leaves the last value. */
  readonly read: () => number | undefined | Promise<number | undefined>;
}

// From a fraction of a millisecond, a hop on the bus, to the longest run of a tool.
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60];

/** This process's metrics, in Prometheus' text form at `/metrics`. Names begin with `ambit_` and end with their unit. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #answers: Histogram<'contract' | 'code'>;

  constructor(service: string) {
    this.#registry.setDefaultLabels({ service });
    collectDefaultMetrics({ register: this.#registry });
    this.#answers = new Histogram({
      name: 'ambit_answer_seconds',
      help: 'Answers by contract and outcome',
      labelNames: ['contract', 'code'],
      buckets: SECONDS,
      registers: [this.#registry],
    });
  }

  counter<const L extends string>(def: MetricDef<L>): Counter<L> {
    return new Counter({ name: def.name, help: def.help, labelNames: def.labels ?? [], registers: [this.#registry] });
  }

  histogram<const L extends string>(def: MetricDef<L>): Histogram<L> {
    return new Histogram({ name: def.name, help: def.help, labelNames: def.labels ?? [], buckets: SECONDS, registers: [this.#registry] });
  }

  gauge(def: GaugeDef): void {
    new Gauge({
      name: def.name,
      help: def.help,
      registers: [this.#registry],
      async collect() {
        const value = await def.read();
        if (value !== undefined) this.set(value);
      },
    });
  }

  answered(contract: Rpc, elapsedMs: number, code: string | undefined): void {
    this.#answers.observe({ contract: contract.subject, code: code ?? 'ok' }, elapsedMs / 1_000);
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }
}
