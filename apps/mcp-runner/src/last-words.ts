const LONGEST = 300;
// eslint-disable-next-line no-control-regex -- colours are written with them
const COLOUR = /\u001b\[[0-9;]*m/g;
/** A stack frame, a bracket of a dumped object, the line below which Node signs its crash. */
const TELLS_NOTHING = /^(at\s.*|[\s{}[\](),^~-]*|Node\.js v\d[\w.+-]*)$/;
const NAMES_AN_ERROR = /^(?:uncaught |\[cause\]: )?(?:[\w.]*(?:error|exception)|fatal|panic)\b/i;

/** The line of a program's error output that says most about its end: the last that names an error, or the last that says anything. */
export function lastWords(output: string): string | undefined {
  const lines = output
    .replace(COLOUR, '')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => !TELLS_NOTHING.test(line));
  return (lines.findLast((line) => NAMES_AN_ERROR.test(line)) ?? lines.at(-1))?.slice(0, LONGEST);
}
