import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort, startGuarded, type GuardedProcess } from '@ambit/embedded';
import { keyFiles } from '@ambit/identity';
import pc from 'picocolors';
import { z } from 'zod';
import { runInit } from './run-init.js';
import { say, timed } from './say.js';
import { startServers, type Servers } from './servers.js';
import { builtServices, type ServiceDefinition } from './services.js';
import { repository, type StackFolder } from './stack-folder.js';
import { SupervisedService } from './supervised-service.js';

const QUICKSTART = join(repository, 'examples/quickstart/dist/quickstart.js');
const STILL_STARTING_MS = 15_000;
const StackFile = z.object({ pid: z.int() });

/** Servers, `ambit init`, services, quickstart: started in this order, stopped in the other. */
export class Stack {
  readonly #folder: StackFolder;
  readonly #replicas: ReadonlyMap<string, number>;
  readonly #services: SupervisedService[] = [];
  #servers: Servers | undefined;
  #job: GuardedProcess | undefined;
  #apiUrl: string | undefined;
  #edgeUrl: string | undefined;
  #isStopping = false;

  constructor(folder: StackFolder, replicas: ReadonlyMap<string, number>) {
    this.#folder = folder;
    this.#replicas = replicas;
  }

  async start(): Promise<void> {
    await this.#refuseSecondStart();
    await this.#folder.prepare();
    const servers = await startServers(this.#folder);
    this.#servers = servers;
    if (this.#isStopping) return;
    const credentials = servers.credentialsOf('init');
    await timed('database schemas, streams, buckets and accounts', () =>
      runInit([], {
        NATS_URL: servers.natsUrl,
        DATABASE_URL: servers.databaseUrl,
        ...(credentials === undefined ? {} : { NATS_CREDS: credentials }),
        ...(process.env.NATS_URL === undefined
          ? { AMBIT_KEYS_DIR: this.#folder.keys, AMBIT_RESOLVER_DIR: join(this.#folder.nats, 'accounts') }
          : {}),
      }),
    );
    await this.#startServices(servers);
    await this.#writeStackFile();
    this.#sayWhere();
  }

  /** Runs the quickstart job and gives its exit code. */
  async runQuickstart(isOnce: boolean): Promise<number> {
    if (!existsSync(QUICKSTART) || this.#apiUrl === undefined) {
      say('the quickstart job is not built; nothing to run');
      return 0;
    }
    const token = await readFile(this.#folder.tokenFile, 'utf8');
    this.#job = startGuarded({
      command: process.execPath,
      args: ['--enable-source-maps', QUICKSTART, ...(isOnce ? ['--once'] : [])],
      env: { ...process.env, AMBIT_URL: this.#apiUrl, AMBIT_TOKEN: token.trim(), NATS_URL: this.#servers?.natsUrl ?? '' },
      output: 'inherit',
    });
    const { code } = await this.#job.exited;
    if (!this.#isStopping && code !== 0) say(`the quickstart job failed (exit ${code ?? 'unknown'})`);
    return code ?? 1;
  }

  /** Stops intake first, then what it leans on, the servers last. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#job?.stop();
    for (const service of [...this.#services].reverse()) await service.stop();
    await this.#servers?.stop();
    if (this.#servers !== undefined) await rm(this.#folder.stackFile, { force: true });
  }

  async #startServices(servers: Servers): Promise<void> {
    const definitions = builtServices();
    if (definitions.length === 0) say('no service is built');
    const ports: Record<string, number> = { ...servers.ports };
    const remembered = await this.#folder.ports();
    const starting: Promise<void>[] = [];
    const waiting = new Set<string>();
    for (const definition of definitions) {
      for (let replica = 1; replica <= (this.#replicas.get(definition.name) ?? 1); replica++) {
        const label = replica === 1 ? definition.name : `${definition.name}-${replica}`;
        const opsPort = (ports[label] = await freePort(remembered[label]));
        const env = await this.#environmentOf(definition, { servers, opsPort });
        if (definition.isHttp === true && replica === 1) {
          const httpPort = (ports[`${label}/http`] = await freePort(remembered[`${label}/http`]));
          env['AMBIT_HTTP_PORT'] = String(httpPort);
          this.#apiUrl = `http://127.0.0.1:${httpPort}`;
        }
        if (definition.isEdge === true) {
          const edgePort = (ports[`${label}/mcp`] = await freePort(remembered[`${label}/mcp`]));
          env['AMBIT_EDGE_PORT'] = String(edgePort);
          this.#edgeUrl ??= `http://127.0.0.1:${edgePort}/mcp`;
        }
        const service = new SupervisedService({
          service: definition.name,
          label,
          env,
          opsPort,
          logFile: join(this.#folder.logs, `${label}.log`),
        });
        this.#services.push(service);
        waiting.add(label);
        const ready = timed(`${label} is ready`, () => service.start(() => void this.#writeStackFile()));
        starting.push(ready.finally(() => waiting.delete(label)));
      }
    }
    await this.#folder.rememberPorts(ports);
    const ticker = setInterval(() => say(`still starting: ${[...waiting].join(', ')}`), STILL_STARTING_MS);
    await Promise.all(starting).finally(() => clearInterval(ticker));
  }

  async #environmentOf(
    definition: ServiceDefinition,
    at: { readonly servers: Servers; readonly opsPort: number },
  ): Promise<NodeJS.ProcessEnv> {
    const { servers, opsPort } = at;
    const {
      DATABASE_URL: _database,
      NATS_CREDS: _credentials,
      AMBIT_BOOTSTRAP_TOKEN: bootstrapToken,
      AMBIT_SEALING_KEY: sealingKey,
      AMBIT_EDGE_KEY: edgeKey,
      ...inherited
    } = process.env;
    const credentials = servers.credentialsOf(definition.name);
    const token = bootstrapToken ?? (await this.#folder.secret(keyFiles.bootstrapToken));
    if (bootstrapToken !== undefined) await writeFile(this.#folder.tokenFile, `${bootstrapToken}\n`, { mode: 0o600 });
    return {
      // Compiled code of the packages is kept between starts: a third of the time until a service is ready.
      NODE_COMPILE_CACHE: this.#folder.compiled,
      ...inherited,
      NATS_URL: servers.natsUrl,
      OPS_PORT: String(opsPort),
      AMBIT_DATA_DIR: join(this.#folder.data, definition.name),
      ...(credentials === undefined ? {} : { NATS_CREDS: credentials }),
      ...(definition.hasDatabase ? { DATABASE_URL: servers.databaseUrl } : {}),
      ...(definition.hasSealingKey === true ? { AMBIT_SEALING_KEY: sealingKey ?? (await this.#folder.secret(keyFiles.sealingKey)) } : {}),
      ...(definition.isEdge === true ? { AMBIT_EDGE_KEY: edgeKey ?? (await this.#folder.secret(keyFiles.edgeKey)) } : {}),
      ...(definition.isHttp === true
        ? { AMBIT_BOOTSTRAP_TOKEN: token, ...(servers.adminKeys === undefined ? {} : { AMBIT_ADMIN_KEYS_DIR: servers.adminKeys }) }
        : {}),
    };
  }

  async #refuseSecondStart(): Promise<void> {
    const held = StackFile.safeParse(JSON.parse(await readFile(this.#folder.stackFile, 'utf8').catch(() => 'null')));
    if (!held.success || held.data.pid === process.pid) return;
    try {
      process.kill(held.data.pid, 0);
    } catch {
      return;
    }
    throw new Error(
      `Ambit is running from this folder already (process ${held.data.pid}); stop it, or give this one another AMBIT_HOME. If that is not so, remove ${this.#folder.stackFile}`,
    );
  }

  async #writeStackFile(): Promise<void> {
    if (this.#isStopping) return;
    const services = this.#services.map((service) => ({
      name: service.options.service,
      label: service.options.label,
      pid: service.pid,
      opsPort: service.options.opsPort,
      log: service.options.logFile,
    }));
    const content = {
      pid: process.pid,
      apiUrl: this.#apiUrl,
      edgeUrl: this.#edgeUrl,
      tokenFile: this.#folder.tokenFile,
      natsUrl: this.#servers?.natsUrl,
      natsMonitorUrl: this.#servers?.natsMonitorUrl,
      databaseUrl: this.#servers?.databaseUrl,
      keysDir: this.#folder.keys,
      servers: this.#servers?.pids,
      services,
    };
    await writeFile(this.#folder.stackFile, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  }

  #sayWhere(): void {
    if (this.#apiUrl !== undefined) {
      say(`the API is at ${pc.bold(this.#apiUrl)}; its first token is in ${this.#folder.tokenFile}`);
    }
    if (this.#edgeUrl !== undefined) say(`MCP clients are served at ${pc.bold(this.#edgeUrl)}; docs/mcp-edge.md says how they come in`);
    say(`logs are in ${this.#folder.logs}; addresses and process ids in ${this.#folder.stackFile}`);
  }
}
