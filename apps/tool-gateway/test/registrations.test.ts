import { silentLog } from '@ambit/bus';
import { RESERVED_TABLE } from '@ambit/capability';
import { toolGateway, type ToolRegistration } from '@ambit/contracts';
import { openDatabase } from '@ambit/db';
import { startNats, startPostgres, startService, type TestNats, type TestPostgres } from '@ambit/testing';
import { afterAll, beforeAll, expect, jest } from '@jest/globals';
import { Module, type Provider, type Type } from '@nestjs/common';
import { verifies } from '../../../test/verifies.js';
import type { Builtin } from '../src/builtins/builtin.js';
import { BuiltinGroups } from '../src/builtins/builtin.groups.js';
import { BuiltinRegistry, type BuiltinGroup } from '../src/builtins/builtin.registry.js';
import { question } from '../src/builtins/question.builtin.js';
import { ToolGatewayModule } from '../src/tool-gateway.module.js';

jest.setTimeout(120_000);
let nats: TestNats;
let postgres: TestPostgres;
beforeAll(async () => {
  [nats, postgres] = await Promise.all([startNats(), startPostgres()]);
}, 120_000);
afterAll(async () => {
  await postgres?.stop();
  await nats?.stop();
});

const FOR_MODELS: readonly string[] = ['user-configurable', 'system-model'];
const partsOf = <T>(key: 'controllers' | 'providers'): T[] => Reflect.getMetadata(key, ToolGatewayModule) as T[];

/** The gateway of another release, whose groups of built-ins are these. */
function releaseOf(change: (groups: BuiltinGroup[]) => BuiltinGroup[]): new () => object {
  class Release {}
  const registry = {
    provide: BuiltinRegistry,
    inject: [BuiltinGroups],
    useFactory: (groups: BuiltinGroups) => new BuiltinRegistry(change(groups.all()), silentLog),
  };
  Module({ controllers: partsOf<Type>('controllers'), providers: [...partsOf<Provider>('providers'), registry] })(Release);
  return Release;
}
const start = (release: new () => object) => startService('tool-gateway', release, { nats, postgres, database: openDatabase });
const list = async (purpose: 'ingress' | 'configurable' | 'diagnostic') => {
  const { tools, unavailable } = await nats.bus.call(toolGateway.listTools, { purpose });
  return { names: tools.map(({ name }) => name), unavailable };
};

verifies('R-TOOL-1#2', 'a group of built-ins that cannot be loaded is named, and all others are listed', async () => {
  const whole = await start(releaseOf((groups) => groups));
  const before = { ingress: await list('ingress'), diagnostic: await list('diagnostic') };
  await whole.close();
  expect(before.ingress.unavailable).toEqual([]);
  const broken = (): never => {
    throw new Error('a part of it is not there');
  };
  const service = await start(releaseOf((groups) => groups.map((group) => (group.name === 'tape' ? { ...group, load: broken } : group))));
  try {
    const unavailable = [{ group: 'tape', detail: expect.any(String) }];
    expect(await list('ingress')).toEqual({ names: before.ingress.names.filter((name) => !name.startsWith('tape_')), unavailable });
    expect(await list('diagnostic')).toEqual({ names: [], unavailable });
    expect(before.diagnostic.names).toEqual(['tape_info', 'tape_anchors']);
  } finally {
    await service.close();
  }
});

verifies(
  ['R-INGRESS-7#1', 'R-INGRESS-7#2', 'R-INGRESS-7#3', 'R-INGRESS-7#4'],
  'a gateway that starts holds its own tools and no others, the same again when another starts, and none that a release has no more',
  async () => {
    const offered = async () => {
      const { tools, toolsets, epoch } = await nats.bus.call(toolGateway.listTools, { purpose: 'ingress', agentId: 'fresh' });
      return { names: tools.map(({ name }) => name).sort(), toolsets, epoch };
    };
    const core: string[] = [];
    const first = await start(
      releaseOf((groups) => {
        const builtins = groups.flatMap((group) => group.load()).map(({ registration }) => registration);
        core.push(...builtins.filter(({ exposure }) => FOR_MODELS.includes(exposure)).map(({ name }) => name));
        return groups;
      }),
    );
    let again: typeof first | undefined;
    let booted: Awaited<ReturnType<typeof offered>>;
    try {
      booted = await offered();
      expect(booted).toMatchObject({ names: core.sort(), toolsets: [] });
      expect(booted.names.filter((name) => RESERVED_TABLE.get(name)?.by !== 'platform')).toEqual([]);
      again = await start(ToolGatewayModule);
      await first.close();
      expect(await offered()).toEqual(booted);
    } finally {
      await first.close();
      await again?.close();
    }
    const smaller = await start(releaseOf((groups) => groups.filter(({ name }) => name !== 'plan')));
    try {
      const left = await offered();
      expect(left.names).toEqual(core.filter((name) => name !== 'update_plan'));
      expect(left.epoch).toBeGreaterThan(booted.epoch);
    } finally {
      await smaller.close();
    }
  },
);

verifies(
  ['R-TOOL-2#5', 'R-TOOL-2#6'],
  'a release that registers a built-in under another exposure, or under none, does not start; the one that runs goes on',
  async () => {
    const running = await start(ToolGatewayModule);
    try {
      const { registration } = question;
      const without = Object.fromEntries(Object.entries(registration).filter(([key]) => key !== 'exposure'));
      const wrong: readonly [object, RegExp][] = [
        ...(['system-model', 'diagnostic', 'runtime-only'] as const).map((exposure): [object, RegExp] => [
          { ...registration, exposure },
          /EXPOSURE_MISMATCH/,
        ]),
        [{ ...registration, name: 'ask_me' }, /EXPOSURE_UNLISTED/],
        [without, /question: exposure/],
      ];
      for (const [given, message] of wrong) {
        const builtin: Builtin = { kind: 'intercepted', registration: given as ToolRegistration };
        const release = releaseOf((groups) => [
          ...groups.filter(({ name }) => name !== 'question'),
          { name: 'wrong', load: () => [builtin] },
        ]);
        await expect(start(release)).rejects.toThrow(message);
      }
      expect((await list('ingress')).names).toContain('question');
    } finally {
      await running.close();
    }
  },
);
