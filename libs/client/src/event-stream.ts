/** One event of a `text/event-stream`. */
export interface StreamEvent {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: string;
}

/** The longest event that is taken; the server's are at most half of it. */
const EVENT_CHARACTERS = 2 * 1024 * 1024;

/** The events of a body in the format that server-sent events have. An event that is cut off at the end is left out, as the format says. */
export async function* readEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<StreamEvent> {
  const decoder = new TextDecoder();
  const fields = new Fields();
  let rest = '';
  for await (const bytes of body) {
    rest += decoder.decode(bytes, { stream: true });
    // A carriage return at the end may be half of a line break.
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const event = fields.take(line);
      if (event !== undefined) yield event;
    }
    if (rest.length + fields.size > EVENT_CHARACTERS) throw new Error('an event of the stream is longer than 2 MiB');
  }
}

/** Gathers the lines of one event. */
class Fields {
  #id: string | undefined;
  #event = '';
  #data: string[] = [];
  size = 0;

  /** Takes a line; gives the event that an empty line ends. */
  take(line: string): StreamEvent | undefined {
    if (line === '') return this.#end();
    this.size += line.length;
    if (line.startsWith(':')) return undefined;
    const colon = line.indexOf(':');
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'id') this.#id = value;
    if (name === 'event') this.#event = value;
    if (name === 'data') this.#data.push(value);
    return undefined;
  }

  #end(): StreamEvent | undefined {
    const event = { id: this.#id, event: this.#event === '' ? 'message' : this.#event, data: this.#data.join('\n') };
    const isEvent = this.#data.length > 0;
    this.#id = undefined;
    this.#event = '';
    this.#data = [];
    this.size = 0;
    return isEvent ? event : undefined;
  }
}
