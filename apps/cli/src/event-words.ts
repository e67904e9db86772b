import type { FollowedEvent } from '@ambit/client';
import type { Context } from './context.js';
import { printable } from './table.js';

/** An event of a run in words; empty where it says nothing that another has not said. */
export function eventWords(event: FollowedEvent, { paint }: Context): string {
  switch (event.type) {
    case 'run.changed': {
      const { runId, status, resumes, fault, fingerprint } = event.data;
      const what = status === 'queued' && resumes !== null ? `goes on as run ${runId}` : `run ${status}`;
      const why = fault === null ? '' : `: ${fault.code}: ${printable(fault.message)}`;
      return `${paint.bold(what)}${status === 'queued' ? paint.dim(` under ${fingerprint.slice(0, 12)}`) : ''}${why}\n`;
    }
    case 'call.ended': {
      const { tool, status, fault, rule, durationMs } = event.data;
      const time = durationMs === null ? '' : paint.dim(` ${Math.round(durationMs)} ms`);
      const why = fault === null ? '' : `: ${fault.code}: ${printable(fault.message)}`;
      return `  ${status === 'completed' ? paint.green(status) : paint.yellow(status)} ${printable(tool)}${why}${rule === null ? '' : paint.dim(` by rule ${printable(rule)}`)}${time}\n`;
    }
    case 'interaction.requested': {
      const { id, tool, kind, rule, principal, argumentsPreview, question, blockedBy } = event.data.interaction;
      const asks =
        question === null ? `${kind} for ${printable(tool)} ${printable(argumentsPreview, 400)}` : printable(question.question, 400);
      const how = question === null ? `ambit approve ${id}    or    ambit deny ${id}` : `ambit answer ${id} "…"`;
      return `  ${paint.cyan('waits')} ${asks}\n    for ${principal.id}${rule === null ? '' : `, by rule ${printable(rule)}`}\n    ${how}${blockedBy === null ? '' : `   (after ${blockedBy})`}\n`;
    }
    case 'interaction.settled':
      return `  ${event.data.status}${event.data.decidedBy === null ? '' : ` by ${event.data.decidedBy.id}`}\n`;
    case 'tape.appended':
      return event.data.kind === 'message' && event.data.role === 'assistant' && event.data.preview !== ''
        ? `${printable(event.data.preview, 4_000)}\n`
        : '';
    case 'run.output':
      return '';
  }
}
