import { HEADER, mcpBroker, sessionService, skillStore, subject } from '@ambit/contracts';
import { headers, type NatsConnection } from '@nats-io/transport-node';

type Body = Record<string, unknown>;
interface Asked {
  readonly who: string;
  readonly input: Body;
}
interface Refusal {
  readonly code: string;
  readonly status?: number;
  readonly data?: unknown;
}

/** What is asked when a plugin is brought in, in the order of asking. */
const HANDED: readonly string[] = [skillStore.putBlob, skillStore.putContribution, mcpBroker.putServer].map(({ subject: who }) => who);
const REVOKED: readonly string[] = [sessionService.revokeOwner, mcpBroker.revokeOwner, skillStore.revokeOwner].map(
  ({ subject: who }) => who,
);

/** What each of them may be refused with. */
const REFUSALS: Readonly<Record<string, Refusal>> = {
  [skillStore.putBlob.subject]: { code: 'BLOB_DIGEST', status: 400 },
  [skillStore.putContribution.subject]: { code: 'NAME_TAKEN', data: { name: 'greeting', owner: 'plugin:other' } },
  [mcpBroker.putServer.subject]: { code: 'SLUG_TAKEN', data: { owner: 'user' } },
};

/** The owners that a plugin's parts are handed to: they keep what they are given until its owner is taken away, and write down what they are asked. */
export class Peers {
  readonly asked: Asked[] = [];
  /** Owner of each server and of each skill, by name. */
  readonly servers = new Map<string, string>();
  readonly skills = new Map<string, string>();
  /** Says what a request is refused with. */
  refuse: (asked: Asked) => Refusal | undefined = () => undefined;

  constructor(private readonly connection: NatsConnection) {
    this.#answer(mcpBroker.putServer, (input) => {
      this.servers.set(String(input['slug']), String(input['owner']));
      return serverOf(input);
    });
    this.#answer(mcpBroker.revokeOwner, ({ owner }) => ({ closed: forget(this.servers, owner) }));
    this.#answer(sessionService.revokeOwner, () => ({ runs: 0 }));
    this.#answer(skillStore.revokeOwner, ({ owner }) => ({ withdrawn: forget(this.skills, owner) }));
    this.#answer(skillStore.putBlob, (input) => ({ have: Number(input['bytes']), complete: true }));
    this.#answer(skillStore.putContribution, ({ owner }) => {
      this.skills.set(`greeting of ${String(owner)}`, String(owner));
      return { names: ['greeting'] };
    });
  }

  reset(): void {
    this.asked.length = 0;
    this.refuse = () => undefined;
  }

  /** How much there is of a plugin. */
  partsOf(id: string): number {
    return [...this.servers.values(), ...this.skills.values()].filter((owner) => owner === `plugin:${id}`).length;
  }

  /** The n-th request that hands something over is refused, counted from now: as its owner would, or because nobody is there. */
  refuseHanded(nth: number, how: 'as declared' | 'away'): void {
    let count = 0;
    this.refuse = ({ who }) => {
      if (!HANDED.includes(who) || ++count !== nth) return undefined;
      return how === 'away' ? { code: 'UNAVAILABLE', status: 503 } : REFUSALS[who];
    };
  }

  /** What was asked, a letter each: b(lob), c(ontribution), s(erver) handed over, r(evoked). */
  get log(): string {
    return this.asked.map(({ who }) => (REVOKED.includes(who) ? 'r' : 'bcs'[HANDED.indexOf(who)])).join('');
  }

  #answer(contract: { readonly subject: string }, answer: (input: Body) => Body): void {
    this.connection.subscribe(subject(contract, {}), {
      callback: (_error, message) => {
        const input = message.json<Body>();
        const asked = { who: contract.subject, input };
        this.asked.push(asked);
        const refusal = this.refuse(asked);
        if (refusal === undefined) {
          message.respond(JSON.stringify(answer(input)));
          return;
        }
        const header = headers();
        header.set(HEADER.errorCode, String(refusal.status ?? 409));
        header.set(HEADER.error, refusal.code);
        message.respond(JSON.stringify({ code: refusal.code, message: refusal.code, data: refusal.data }), { headers: header });
      },
    });
  }
}

function forget(held: Map<string, string>, owner: unknown): number {
  const names = [...held].filter(([, one]) => one === owner).map(([name]) => name);
  for (const name of names) held.delete(name);
  return names.length;
}

/** What the broker says of a server that it was given. */
export const serverOf = (input: Body): Body => ({
  ...input,
  id: '0190c3a0-0000-7000-8000-000000000001',
  configGeneration: 1,
  bindingHash: 'a'.repeat(64),
  state: 'idle',
  reason: null,
  catalogHash: null,
  tools: 0,
  refusedNames: [],
  stale: false,
  runsAs: null,
  protocol: null,
  version: 1,
  createdAt: new Date().toISOString(),
  updatedAt: new Date().toISOString(),
});
