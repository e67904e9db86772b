import { BoundedMap, excerptOf, PREVIEW_BYTES, previewArguments } from '@ambit/capability';
import { Bus } from '@ambit/bus';
import { mcpBroker, type Server, type Target } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';

type Kept = Server['argumentsKept'];

const REMEMBERED_MS = 30_000;
/** A refused call waits for it. */
const ANSWER_MS = 1_000;
/** So that nobody is asked for each call while there is no answer. */
const SILENCE_MS = 1_000;
const SERVERS = 1_000;

/** What of a call's arguments is kept for people: as the administrator of its server says, redacted where there is no server. */
@Injectable()
export class ArgumentsPolicy {
  readonly #known = new BoundedMap<string, { readonly until: number; readonly kept: Promise<Kept> }>(SERVERS);

  constructor(@Inject(Bus) private readonly bus: Bus) {}

  /** The text to keep; undefined where only the digest may stay, which the call's record has anyhow. */
  async textOf(target: Target | null, input: Readonly<Record<string, unknown>>): Promise<string | undefined> {
    switch (target?.kind === 'mcp' ? await this.#of(target.serverId) : 'redacted') {
      case 'digest':
        return undefined;
      case 'full':
        return excerptOf(JSON.stringify(input), PREVIEW_BYTES);
      case 'redacted':
        return previewArguments(input).text;
    }
  }

  #of(serverId: string): Promise<Kept> {
    const known = this.#known.get(serverId);
    if (known !== undefined && known.until > performance.now()) return known.kept;
    const kept = this.bus.call(mcpBroker.getServer, { id: serverId }, { timeoutMs: ANSWER_MS }).then(
      ({ argumentsKept }) => argumentsKept,
      (): Kept => {
        // Nobody says what may be kept: nothing is, until somebody does.
        this.#known.set(serverId, { until: performance.now() + SILENCE_MS, kept: Promise.resolve('digest') });
        return 'digest';
      },
    );
    this.#known.set(serverId, { until: performance.now() + REMEMBERED_MS, kept });
    return kept;
  }
}
