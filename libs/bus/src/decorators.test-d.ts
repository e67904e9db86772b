// Compiled by the type check; nothing here runs. Each expected error is a handler that must not compile.
import { event, rpc, type Parsed } from '@ambit/contracts';
import { z } from 'zod';
import type { Bus } from './bus.js';
import type { Call } from './call.js';
import { Answers, Hears } from './decorators.js';

const example = rpc('ambit.rpc.example.v1.thing.get.{folder}', {
  summary: '',
  input: z.object({ id: z.string() }),
  output: z.object({ size: z.int() }),
});
const changed = event('ambit.evt.example.v1.thing.changed', { summary: '', payload: z.object({ id: z.string() }) });
type Example = typeof example;

export class Handlers {
  @Answers(example)
  fits(input: Parsed<Example>, call: Call<Example>): { size: number } {
    return { size: input.id.length + call.keys.folder.length };
  }

  // @ts-expect-error a wrong return
  @Answers(example)
  wrongReturn(input: Parsed<Example>): { length: number } {
    return { length: input.id.length };
  }

  // @ts-expect-error a wrong parameter
  @Answers(example)
  wrongParameter(input: { readonly id: number }): { size: number } {
    return { size: input.id };
  }

  // @ts-expect-error a key that the subject does not have
  @Answers(example)
  wrongKey(_input: Parsed<Example>, call: { readonly keys: { readonly drawer: string } }): { size: number } {
    return { size: call.keys.drawer.length };
  }

  // @ts-expect-error a wrong payload
  @Hears(changed)
  wrongPayload(payload: { readonly id: number }): void {
    void payload;
  }
}

export async function callers(bus: Bus): Promise<number> {
  // @ts-expect-error the subject has a key
  await bus.call(example, { id: 'a' });
  // @ts-expect-error the key is another
  await bus.call(example, { id: 'a' }, { keys: { drawer: 'b' } });
  // @ts-expect-error the input has another shape
  await bus.call(example, { id: 1 }, { keys: { folder: 'b' } });
  return (await bus.call(example, { id: 'a' }, { keys: { folder: 'b' } })).size;
}
