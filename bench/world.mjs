// What is declared in the stack for a measurement: two echo servers, an agent that may call them, a worker, sessions with a run each.
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const ECHO = fileURLToPath(new URL('./processes/echo-stdio.mjs', import.meta.url));
export const stdioEcho = { command: process.execPath, args: [ECHO] };

const SERVERS = { 'bench-memory': { type: 'inmemory', name: 'echo' }, 'bench-stdio': { type: 'stdio', ...stdioEcho } };

export class World {
  #stack;
  #token;
  /** An agent of its own for each measurement: nobody else's runs come to its worker. */
  agentId = `bench-${randomUUID().slice(0, 8)}`;
  workerName = 'bench';
  #servers = [];
  #sessions = [];
  #worker;

  static async of(stack) {
    const world = new World();
    world.#stack = stack;
    world.#token = (await readFile(stack.tokenFile, 'utf8')).trim();
    return world;
  }

  /** Declares servers and agent, and gives the credentials of a worker. */
  async declare() {
    for (const [slug, transport] of Object.entries(SERVERS)) {
      const server = await this.#send('PUT', `/v1/server/${slug}`, { body: { transport, readOnly: ['echo'] } });
      this.#servers.push(server.id);
      const tested = await this.#send('POST', `/v1/server/${server.id}/test`);
      if (tested.state !== 'connected') throw new Error(`${slug} is ${tested.state}: ${tested.reason}`);
    }
    await this.#send('PUT', `/v1/agent/${this.agentId}`, {
      body: {
        model: 'none',
        policy: {
          servers: Object.keys(SERVERS),
          rules: [{ allow: 'mcp__bench-*' }],
          limits: { runsAtOnce: 1_000, callsPerRun: 10_000, callsPerMinute: 1_000_000 },
        },
      },
    });
    this.#worker = await this.#send('POST', '/v1/worker', { body: { name: this.workerName, agentId: this.agentId } });
    return this.#worker.credentials;
  }

  /** One message to each of `count` sessions, so that each has one run to do. */
  async begin(count) {
    const principal = { id: 'user:bench', kind: 'person' };
    for (let index = 0; index < count; index++) {
      const body = { principal, agentId: this.agentId, adapter: 'bench', sceneId: `lane-${index}`, content: 'echo' };
      const { sessionId } = await this.#send('POST', '/v1/message', { body, more: { 'idempotency-key': randomUUID() } });
      this.#sessions.push(sessionId);
    }
  }

  /** Takes away what was declared. */
  async remove() {
    if (this.#worker !== undefined) await this.#send('DELETE', `/v1/worker/${this.#worker.id}`);
    for (const id of this.#sessions) await this.#send('DELETE', `/v1/session/${id}`);
    await this.#send('DELETE', `/v1/agent/${this.agentId}`);
    for (const id of this.#servers) await this.#send('DELETE', `/v1/server/${id}`);
  }

  async #send(method, path, { body, more = {} } = {}) {
    const answer = await fetch(`${this.#stack.apiUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json', ...more },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${text.slice(0, 1_000)}`);
    return text === '' ? {} : JSON.parse(text);
  }
}
