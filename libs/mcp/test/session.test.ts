import { afterEach, describe, expect, it } from '@jest/globals';
import { FixtureServer, Watched } from './fixture.js';

const open: Watched[] = [];
function watch(fixture: FixtureServer): Watched {
  const watched = new Watched(fixture.target());
  open.push(watched);
  return watched;
}
afterEach(async () => {
  await Promise.all(open.splice(0).map((watched) => watched.instance.stop()));
});

const tool = (name: string, more: Record<string, unknown> = {}) => ({ name, inputSchema: { type: 'object' }, ...more });

describe('reading a tool list', () => {
  it('walks every page, takes an empty string for a cursor and stops at one that repeats', async () => {
    const fixture = new FixtureServer();
    const next: Record<string, string | undefined> = { start: '', '': 'b', b: '' };
    fixture.onList = (cursor) => ({ tools: [tool(`t-${cursor ?? 'start'}`)], nextCursor: next[cursor ?? 'start'] });
    const { tools, diagnostics } = await watch(fixture).instance.catalogue.get();
    expect(tools.map((item) => item.name)).toEqual(['t-', 't-b', 't-start']);
    expect(diagnostics.map((note) => note.message)).toEqual([expect.stringContaining('repeats a cursor')]);
    expect(fixture.listings).toBe(3);
  });

  it('ends at 64 pages and says so', async () => {
    const fixture = new FixtureServer();
    fixture.onList = (cursor) => ({ tools: [tool(`t${cursor ?? '0'}`)], nextCursor: String(Number(cursor ?? '0') + 1) });
    const { tools, diagnostics } = await watch(fixture).instance.catalogue.get();
    expect(tools).toHaveLength(64);
    expect(diagnostics[0]?.message).toContain('64 pages');
  });

  it('keeps 151 tools and drops one oversized tool alone, each with a reason', async () => {
    const fixture = new FixtureServer();
    let deep: Record<string, unknown> = {};
    for (let level = 0; level < 80; level++) deep = { deep };
    const many = Object.fromEntries(Array.from({ length: 10_001 }, (_, index) => [`k${index}`, 1]));
    fixture.tools = [
      ...Array.from({ length: 151 }, (_, index) => tool(`tool-${String(index).padStart(3, '0')}`, { description: 'x'.repeat(1_700) })),
      tool('fat', { inputSchema: { type: 'object', description: 'x'.repeat(1024 * 1024) } }),
      tool('deep', { inputSchema: deep }),
      tool('wide', { inputSchema: { properties: many } }),
      tool('tool-000'),
      { name: 'no-schema' },
      tool('half', { description: '\ud800' }),
    ];
    const { tools, diagnostics } = await watch(fixture).instance.catalogue.get();
    expect(tools).toHaveLength(151);
    expect(diagnostics.map((note) => note.tool)).toEqual(['fat', 'deep', 'wide', 'tool-000', 'no-schema', 'half']);
  });

  it('lets fields that it does not know survive', async () => {
    const fixture = new FixtureServer();
    fixture.tools = [tool('a', { annotations: { readOnlyHint: true, later: 1 }, 'x-other': [1] })];
    expect((await watch(fixture).instance.catalogue.get()).tools[0]).toEqual({
      name: 'a',
      description: '',
      inputSchema: { type: 'object' },
      annotations: { readOnlyHint: true, later: 1 },
      extra: { 'x-other': [1] },
    });
  });

  it('asks a server without tools for none', async () => {
    const fixture = new FixtureServer();
    fixture.capabilities = {};
    expect((await watch(fixture).instance.catalogue.get()).tools).toEqual([]);
    expect(fixture.listings).toBe(0);
  });
});

describe('a list that changes', () => {
  it('costs one reading and one notice for a burst of a hundred', async () => {
    const fixture = new FixtureServer();
    const watched = watch(fixture);
    await watched.instance.catalogue.get();
    fixture.tools = [tool('a'), tool('b')];
    for (let index = 0; index < 100; index++) await fixture.changed();
    await watched.until(() => watched.catalogues.length === 2);
    expect(watched.catalogues[1]?.tools.map((item) => item.name)).toEqual(['a', 'b']);
    expect(fixture.listings).toBe(2);
  });

  it('never publishes a list that changed while it was read', async () => {
    const fixture = new FixtureServer();
    const watched = watch(fixture);
    fixture.onList = async () => {
      const { tools } = fixture;
      if (fixture.listings === 1) {
        fixture.tools = [tool('new')];
        await fixture.changed();
        // The notice is on its way before the old list is.
        await watched.instance.connected();
      }
      return { tools };
    };
    const { tools } = await watched.instance.catalogue.get();
    expect(tools.map((item) => item.name)).toEqual(['new']);
    expect(watched.catalogues.map((catalogue) => catalogue.tools[0]?.name)).toEqual(['new']);
  });

  it('keeps the good list when a later reading fails, and says that it is stale until one succeeds', async () => {
    const fixture = new FixtureServer();
    const watched = watch(fixture);
    const good = await watched.instance.catalogue.get();
    fixture.onList = () => {
      throw new Error('no list today');
    };
    await fixture.changed();
    await watched.until(() => watched.stale.length === 1);
    expect(watched.stale[0]).toContain('no list today');
    expect(watched.instance.catalogue.current).toBe(good);
    fixture.onList = () => ({ tools: fixture.tools });
    await watched.until(() => watched.stale.length === 2);
    expect(watched.stale[1]).toBeUndefined();
    expect(watched.catalogues).toHaveLength(1);
  });
});

describe('a call', () => {
  it('hands the result through untouched, unknown fields too', async () => {
    const fixture = new FixtureServer();
    const result = { content: [{ type: 'text', text: 'hi', _meta: { later: 1 } }], structuredContent: { n: 1 }, 'x-new': true };
    fixture.onCall = () => result;
    expect(await watch(fixture).call('a')).toEqual({ status: 'completed', result });
  });

  it('tells a tool error from a protocol error', async () => {
    const fixture = new FixtureServer();
    const watched = watch(fixture);
    fixture.onCall = () => ({ content: [], isError: true });
    expect((await watched.call('a')).status).toBe('tool_error');
    fixture.onCall = () => {
      throw new Error('broken');
    };
    expect(await watched.call('a')).toMatchObject({ status: 'refused', message: 'broken' });
  });

  it('tells the server of a cancel and is uncertain, not timed out', async () => {
    const fixture = new FixtureServer();
    const watched = watch(fixture);
    const abort = new AbortController();
    const seen = new Promise<void>((resolve) => {
      fixture.onCall = (_params, signal) => {
        signal.addEventListener('abort', () => resolve());
        queueMicrotask(() => abort.abort(new Error('the person changed their mind')));
        return new Promise(() => undefined);
      };
    });
    expect(await watched.call('a', {}, { abort })).toMatchObject({ status: 'uncertain', cause: 'cancelled' });
    await seen;
  });

  it('that is cancelled before it leaves was not dispatched', async () => {
    const fixture = new FixtureServer();
    const abort = new AbortController();
    abort.abort();
    expect(await watch(fixture).call('a', {}, { abort })).toMatchObject({ status: 'not_dispatched', cause: 'cancelled' });
    expect(fixture.calls).toBe(0);
  });

  it('ends in time with a typed outcome when the server never answers, and progress extends it where configured', async () => {
    const fixture = new FixtureServer();
    const watched = watch(fixture);
    fixture.onCall = () => new Promise(() => undefined);
    expect(await watched.call('a', {}, { timeoutMs: 100 })).toMatchObject({ status: 'uncertain', cause: 'timeout' });
    fixture.onCall = async (_params, _signal, progress) => {
      for (let at = 1; at <= 6; at++) {
        await new Promise((resolve) => setTimeout(resolve, 50));
        await progress(at);
      }
      return { content: [] };
    };
    const seen: number[] = [];
    const call = {
      request: { name: 'a', arguments: {} },
      timeoutMs: 150,
      onProgress: (item: { progress: number }) => seen.push(item.progress),
    };
    expect(await watched.instance.call({ ...call, progressExtends: true, abort: new AbortController() })).toMatchObject({
      status: 'completed',
    });
    expect(seen).toEqual([1, 2, 3, 4, 5, 6]);
    expect(await watched.instance.call({ ...call, abort: new AbortController() })).toMatchObject({ status: 'uncertain', cause: 'timeout' });
  });

  it('is asked for immediately before it leaves', async () => {
    const fixture = new FixtureServer();
    const outcome = await watch(fixture).instance.call({
      request: { name: 'a', arguments: {} },
      timeoutMs: 1_000,
      abort: new AbortController(),
      mayDispatch: () => 'the lease is gone',
    });
    expect(outcome).toEqual({ status: 'not_dispatched', cause: 'stopped', message: 'the lease is gone' });
    expect(fixture.calls).toBe(0);
  });

  it('200 first calls at once open one connection', async () => {
    const fixture = new FixtureServer();
    const watched = watch(fixture);
    const outcomes = await Promise.all(Array.from({ length: 200 }, () => watched.call('a')));
    expect(outcomes.every((outcome) => outcome.status === 'completed')).toBe(true);
    expect(fixture.connections).toBe(1);
  });

  it('in flight is uncertain when the connection ends, and the next one connects anew', async () => {
    const fixture = new FixtureServer();
    const watched = watch(fixture);
    fixture.onCall = () => {
      queueMicrotask(() => void fixture.server?.close());
      return new Promise(() => undefined);
    };
    expect(await watched.call('a')).toMatchObject({ status: 'uncertain', cause: 'connection_lost' });
    fixture.onCall = () => ({ content: [] });
    expect(await watched.call('a')).toMatchObject({ status: 'completed' });
    expect(fixture.connections).toBe(2);
  });
});
