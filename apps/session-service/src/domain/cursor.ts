/** Where a page of things ordered by time ended. */
export interface Place {
  readonly at: Date;
  readonly id: string;
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export const cursorOf = (at: string, id: string): string => `${at}_${id}`;

/** Reads a cursor back; undefined for a text that is none. */
export function placeOf(cursor: string): Place | undefined {
  const [at = '', id = ''] = cursor.split('_');
  const time = new Date(at);
  return Number.isNaN(time.getTime()) || !UUID.test(id) ? undefined : { at: time, id };
}
