import { event, job, rpc, signal, streams, type Principal } from '@ambit/contracts';
import { z } from 'zod';

const Note = z.object({ id: z.string().max(100), text: z.string().max(1_000) });

/** A made-up owner's contracts, one of each kind and corner. */
export const notes = {
  getNote: rpc('ambit.rpc.notes.v1.note.get', {
    summary: 'Read a note',
    input: z.object({ id: z.string().max(100), fields: z.array(z.string()).default(['text']) }),
    output: Note,
    idempotent: true,
    timeoutMs: 300,
    errors: {
      NOTE_NOT_FOUND: { status: 404, retry: 'never', message: 'There is no such note', data: z.object({ id: z.string() }) },
      NOTE_LOCKED: { status: 423, retry: 'later', message: 'Somebody holds the note' },
    },
  }),
  writeNote: rpc('ambit.rpc.notes.v1.note.write.{folder}', {
    summary: 'Write a note',
    input: Note,
    output: z.object({ folder: z.string(), version: z.int() }),
    timeoutMs: 300,
  }),
  workerNote: rpc('ambit.rpc.notes.v1.note.tell.{agentId}', {
    summary: 'A worker tells',
    input: z.object({}),
    output: z.object({ principal: z.string().nullable() }),
    audience: 'worker',
  }),
  noteWritten: event('ambit.evt.notes.v1.note.written.{folder}', { summary: 'A note was written', payload: Note }),
  noteRead: event('ambit.evt.notes.v1.note.read', { summary: 'A note was read', payload: Note }),
  otherRead: event('ambit.evt.books.v1.note.read', { summary: 'The same, of another owner', payload: Note }),
  print: job('ambit.job.tool-gateway.v1.call.execute-deferred.{sessionId}', {
    summary: 'Print a note',
    payload: Note,
    stream: streams.deferred.name,
  }),
  noteOpened: signal('ambit.ctl.notes.v1.note.opened.{folder}', { summary: 'Somebody looks', payload: z.object({ by: z.string() }) }),
};

export const ALICE: Principal = { id: 'user:alice', kind: 'person', issuer: 'local', display: 'Alice' };
