import type { CallResult } from './platform.js';

/** A result as one text for a model: its content, or what went wrong. Blocks that are no text are named. */
export function resultText(result: CallResult): string {
  if (result.fault !== undefined)
    return `${result.status}: ${result.fault.code}: ${result.fault.message}${result.fault.data === undefined ? '' : ` ${JSON.stringify(result.fault.data)}`}`;
  const texts = (result.content ?? []).map((block) => (typeof block.text === 'string' ? block.text : `[${block.type}]`));
  return texts.length > 0 ? texts.join('\n') : result.status;
}

/** Whether a model should be told that the call did not do what it was asked. */
export function isFailure(result: CallResult): boolean {
  return result.status !== 'completed';
}
