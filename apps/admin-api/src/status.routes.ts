import { Bus } from '@ambit/bus';
import { httpApi } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { z } from 'zod';
import { bind } from './http/bound-route.js';
import { WorkerCredentials } from './worker-credentials.js';

const Pong = z.looseObject({ name: z.string(), id: z.string(), version: z.string() });
const WAIT_MS = 500;

/** Which services answer, and whether workers are walled off. */
@Injectable()
export class StatusRoutes {
  constructor(
    private readonly bus: Bus,
    private readonly credentials: WorkerCredentials,
  ) {}

  readonly routes = [
    bind(httpApi.status, async ({ caller }) => {
      caller.require('read');
      const found = new Map<string, { version: string; ids: Set<string> }>();
      const answers = await this.bus.connection.requestMany('$SRV.PING', '', { strategy: 'stall', stall: 200, maxWait: WAIT_MS });
      for await (const answer of answers) {
        const pong = Pong.safeParse(answer.json());
        if (!pong.success) continue;
        const service = found.get(pong.data.name) ?? { version: pong.data.version, ids: new Set<string>() };
        service.ids.add(pong.data.id);
        found.set(pong.data.name, service);
      }
      const services = [...found]
        .map(([name, { version, ids }]) => ({ name, instances: ids.size, version }))
        .sort((left, right) => (left.name < right.name ? -1 : 1));
      return {
        version: services.find(({ name }) => name === 'admin-api')?.version ?? 'unknown',
        services,
        workerIsolation: this.credentials.isOn,
      };
    }),
  ];
}
