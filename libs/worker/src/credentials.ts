import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { adminApi, type Keys } from '@ambit/contracts';
import { jwtAuthenticator, nkeys, type Authenticator, type NatsConnection } from '@nats-io/nats-core';
import { z } from 'zod';
import { ask } from './caller.js';

const Claims = z.looseObject({
  iat: z.number().optional(),
  exp: z.number().optional(),
  nats: z.looseObject({ sub: z.looseObject({ allow: z.array(z.string()).optional() }).optional() }),
});

const JWT_OF = /-----BEGIN NATS USER JWT-----\s*([\w.-]+)\s*-+END/;
const JWT = /(-----BEGIN NATS USER JWT-----\s*)[\w.-]+(\s*-+END)/;

/**
 * A worker's credentials file: its user JWT, which lives an hour and is renewed at half of that, and the seed that never leaves this process. A renewed
 * JWT is written into the file, so that a worker that starts again finds it there.
 */
export class Credentials {
  /** By the stopwatch of this process. */
  private gotAt: number | undefined;

  private constructor(
    private jwt: string,
    private readonly seed: Uint8Array,
    private readonly path: string,
  ) {}

  static async read(path: string): Promise<Credentials> {
    const text = await readFile(path, 'utf8');
    const jwt = JWT_OF.exec(text)?.[1];
    const seed = /-----BEGIN USER NKEY SEED-----\s*(SU[A-Z0-9]+)\s*-+END/.exec(text)?.[1];
    if (jwt === undefined || seed === undefined)
      throw new Error(`${path} is not a credentials file: it needs a user JWT and a seed, as "ambit worker create" writes them`);
    return new Credentials(jwt, new TextEncoder().encode(seed), path);
  }

  get authenticator(): Authenticator {
    return jwtAuthenticator(() => this.jwt, this.seed);
  }

  /** The one inbox prefix that these credentials may listen on. */
  get inboxPrefix(): string {
    const inbox = this.claims().nats.sub?.allow?.find((allowed) => allowed.startsWith('_INBOX.'));
    return inbox?.replace(/\.>$/, '') ?? '_INBOX';
  }

  /**
   * Whether half of the JWT's life is over. Of one that this process got, its own stopwatch says so; of one that it was started with, the clock
   * does, as far as what it says can be: a clock that is far off makes a renewal more, never one too few.
   */
  isDue(clock: { readonly nowMs: number; readonly stopwatchMs: number }): boolean {
    const { iat = 0, exp } = this.claims();
    if (exp === undefined) return false;
    const lifeMs = (exp - iat) * 1_000;
    if (this.gotAt !== undefined) return clock.stopwatchMs - this.gotAt > lifeMs / 2;
    const leftMs = exp * 1_000 - clock.nowMs;
    return leftMs > lifeMs || leftMs < lifeMs / 2;
  }

  /** Gets a fresh JWT for this worker's own key, used from the next (re)connection on. Throws also where it cannot be kept in the file. */
  async renew(connection: NatsConnection, agentId: string): Promise<void> {
    const pair = nkeys.fromSeed(this.seed);
    const publicKey = pair.getPublicKey();
    const at = new Date().toISOString();
    const proof = Buffer.from(pair.sign(new TextEncoder().encode(`${publicKey}.${at}`))).toString('base64url');
    const keys: Keys<typeof adminApi.renewCredential.subject> = { agentId };
    const { jwt } = await ask(connection, adminApi.renewCredential, { input: { publicKey, proof, at }, keys });
    this.jwt = jwt;
    this.gotAt = performance.now();
    await this.keep();
  }

  /** In one step: whoever reads the file finds the old JWT or the new one. */
  private async keep(): Promise<void> {
    const text = await readFile(this.path, 'utf8');
    const { mode } = await stat(this.path);
    const next = `${this.path}.${process.pid}.new`;
    try {
      await writeFile(
        next,
        text.replace(JWT, (_all, before: string, after: string) => `${before}${this.jwt}${after}`),
        { mode, flag: 'wx' },
      );
      await rename(next, this.path);
    } catch (error) {
      await rm(next, { force: true }).catch(() => undefined);
      throw new Error(`the renewed credentials could not be written to ${this.path}: a restart in more than an hour will need new ones`, {
        cause: error,
      });
    }
  }

  private claims(): z.output<typeof Claims> {
    const body = this.jwt.split('.')[1] ?? '';
    return Claims.parse(JSON.parse(Buffer.from(body, 'base64url').toString('utf8')));
  }
}
