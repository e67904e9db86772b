// Has a running broker be the client that the suite wants: each scenario is a server that is configured, signed in to where it asks for that,
// listed and called, over the bus, as the rest of the system does it.
import { Bus, Responder, connectBus, silentLog } from '@ambit/bus';
import { mcpBroker, toolGateway } from '@ambit/contracts';
import { randomBytes, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { callsOf } from './client-calls.mjs';
import { readSkills } from './client-skills.mjs';

const SLOW = { timeoutMs: 60_000 };
/** Nobody listens there: where a browser is sent after a sign-in is read off, and not followed. */
const REDIRECT = 'http://127.0.0.1:8080/oauth/callback';
/** The document that the suite expects of clients that publish one. */
const CLIENT_DOCUMENT = 'https://conformance-test.local/client-metadata.json';
/** Each time it is a person who signs in, and who leaves a server that never has enough. */
const SIGN_INS = 2;
/** The suite starts all of its scenarios at once, and takes a server that is kept waiting by the others for one that is slow. */
const AT_ONCE = 3;

export class Driver {
  #bus;
  #stack;
  #gatewayId = randomUUID();
  #closes = [];
  #free = AT_ONCE;
  #waiting = [];

  /** Opens it on a stack; `url` is where the suite's client asks. */
  static async open(stack) {
    const driver = new Driver();
    const connection = await connectBus({
      url: stack.natsUrl,
      name: 'conformance',
      credentials: join(stack.keysDir, 'creds', 'init.creds'),
    });
    driver.#bus = new Bus(connection);
    driver.#stack = stack;
    const [before] = (await driver.#ask(mcpBroker.listSwitches, {})).items.filter(({ name }) => name === 'mcp-skills');
    await driver.#ask(mcpBroker.putSwitch, { name: 'mcp-skills', enabled: true });
    const responder = new Responder({ connection, log: silentLog });
    responder.answer(toolGateway.askBack, ({ kind, params }) => ({ result: answerTo(kind, params) }), {
      keys: { gatewayId: driver.#gatewayId },
    });
    await connection.flush();
    const desk = createServer((request, response) => {
      driver
        .#inTurn(async () => driver.#play(JSON.parse(await text(request))))
        .then((said) => response.end(JSON.stringify(said)))
        .catch((error) => response.writeHead(500).end(String(error.stack ?? error)));
    });
    await new Promise((resolve) => desk.listen(0, '127.0.0.1', resolve));
    driver.url = `http://127.0.0.1:${desk.address().port}/`;
    driver.#closes = [
      () => driver.#ask(mcpBroker.putSwitch, before),
      () => desk.close().closeAllConnections(),
      () => responder.close(),
      () => driver.#bus.close(),
      () => connection.close(),
    ];
    return driver;
  }

  async stop() {
    for (const close of this.#closes) await close();
  }

  async #inTurn(task) {
    if (this.#free === 0) await new Promise((resolve) => this.#waiting.push(resolve));
    else this.#free -= 1;
    try {
      return await task();
    } finally {
      // The place passes straight to the next in line.
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }

  async #play({ url, scenario, context }) {
    const slug = `suite-${randomBytes(6).toString('hex')}`;
    const transport = { type: 'http', url, ...(await this.#authorization(slug, scenario, context)) };
    const { id } = await this.#ask(mcpBroker.putServer, { slug, transport });
    try {
      const server = await this.#connected(id);
      const said = [];
      if (scenario.startsWith('sep-2640-')) said.push(await readSkills(this.#stack, slug, scenario));
      else if (server.state === 'connected')
        for (const call of callsOf(scenario, context, await this.#tools(server))) said.push(await this.#called(server, call));
      return { scenario, context, state: server.state, reason: server.reason, authorization: server.authorization, said };
    } finally {
      await this.#ask(mcpBroker.deleteServer, { id });
      await this.#ask(mcpBroker.deleteSecret, { name: slug, projectId: 'default' });
    }
  }

  /** What the suite gives a client to sign in with. */
  async #authorization(slug, scenario, { client_id: clientId, client_secret: value, private_key_pem: key, signing_algorithm: algorithm }) {
    if (clientId === undefined) return {};
    if (value === undefined && key === undefined) return { authorization: { type: 'interactive', clientId } };
    const secret = { secret: slug };
    await this.#ask(mcpBroker.putSecret, { name: slug, from: 'store', value: value ?? key });
    if (key !== undefined) return { authorization: { type: 'private_key_jwt', clientId, privateKey: secret, algorithm } };
    return {
      authorization: {
        type: scenario.startsWith('auth/client-credentials') ? 'client_credentials' : 'interactive',
        clientId,
        clientSecret: secret,
      },
    };
  }

  /** The server as it is when it is connected, or when nothing more can be done about it. */
  async #connected(id) {
    for (let signIns = 0; ; signIns++) {
      const server = await this.#ask(mcpBroker.testServer, { id });
      if (server.state !== 'needs-auth' || signIns >= SIGN_INS || server.authorization.state === 'error' || !(await this.#signIn(id)))
        return server;
    }
  }

  /** As a person's browser does it. */
  async #signIn(serverId) {
    const { url } = await this.#ask(mcpBroker.startAuthorization, {
      serverId,
      subject: 'shared',
      redirectUri: REDIRECT,
      clientMetadataUrl: CLIENT_DOCUMENT,
    });
    const { headers } = await fetch(url, { redirect: 'manual' });
    const answer = Object.fromEntries(new URL(headers.get('location')).searchParams);
    await this.#ask(mcpBroker.finishAuthorization, answer);
    return true;
  }

  async #tools({ id: serverId, catalogHash }) {
    return (await this.#ask(mcpBroker.cataloguePage, { serverId, catalogHash })).tools;
  }

  async #called(server, { tool, values }) {
    for (let signIns = 0; ; signIns++) {
      try {
        return await this.#call(server, tool, values);
      } catch (error) {
        if (error.code !== 'AUTHORIZATION_REQUIRED' || signIns >= SIGN_INS)
          return { tool, error: error.code ?? String(error), data: error.data };
        await this.#signIn(server.id);
      }
    }
  }

  async #call({ id: serverId, configGeneration, bindingHash }, tool, values) {
    const pin = { configGeneration, bindingHash };
    const sessionId = randomUUID();
    const { instanceId, leaseRevision } = await this.#ask(
      mcpBroker.ensureInstance,
      { ...pin, agentId: 'conformance', sessionId },
      { serverId },
    );
    return this.#ask(
      mcpBroker.executeCall,
      {
        ...pin,
        ...{ serverId, leaseRevision, tool, arguments: values, sessionId, gatewayId: this.#gatewayId },
        ...{ operationId: randomBytes(32).toString('hex'), callTimeoutMs: 30_000 },
      },
      { instanceId },
    );
  }

  #ask(contract, input, keys = {}) {
    return this.#bus.call(contract, input, { keys, ...SLOW });
  }
}

/** What a person would answer who leaves a form as it is. */
function answerTo(kind, { requestedSchema }) {
  if (kind === 'sampling') return { role: 'assistant', content: { type: 'text', text: 'Paris' }, model: 'none', stopReason: 'endTurn' };
  if (kind === 'roots') return { roots: [] };
  const fields = Object.entries(requestedSchema?.properties ?? {});
  return { action: 'accept', content: Object.fromEntries(fields.map(([name, schema]) => [name, schema.default ?? plain(schema)])) };
}

function plain({ type, enum: options }) {
  if (options !== undefined) return options[0];
  return type === 'boolean' ? true : type === 'string' ? 'words' : 1;
}
